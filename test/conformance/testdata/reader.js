// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// An application that says which requests it has read: one line of JSON on standard output for each, once its body is there.
const http = require('http');
const server = http.createServer({keepAliveTimeout: 60000}, (request, response) => {
  let length = 0;
  request.on('data', (part) => { length += part.length; });
  request.on('error', () => {});
  request.on('end', () => {
    console.log(JSON.stringify({mark: request.headers['x-mark'] || '', method: request.method, url: request.url, host: request.headers.host || '', length}));
    response.end('ok');
  });
});
server.on('upgrade', (request, socket) => {
  // A WebSocket without a library: the handshake, and an echo of the frames' bytes.
  const accept = require('crypto').createHash('sha1')
    .update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + '\r\n\r\n');
  socket.on('data', (frame) => {
    // A masked text frame of a client, up to 125 bytes, goes back unmasked.
    if ((frame[0] & 0x0f) === 8) { socket.end(Buffer.from([0x88, 0])); return; }
    const length = frame[1] & 0x7f, mask = frame.subarray(2, 6), text = Buffer.from(frame.subarray(6, 6 + length));
    for (let i = 0; i < length; i++) text[i] ^= mask[i % 4];
    socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
  });
  socket.on('error', () => {});
});
server.on('clientError', (error, socket) => { socket.destroy(); });
server.listen(0, '127.0.0.1', () => { console.log(JSON.stringify({port: server.address().port})); });
