// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Node's own clients against the address that is given: http with keep-alive and pipelines of bodies, http2, and WebSocket.
const http = require('http'), http2 = require('http2'), assert = require('assert');
const port = Number(process.argv[2]), h2port = Number(process.argv[3]);

function ask(agent, i) {
  return new Promise((resolve, reject) => {
    const request = http.request({port, host: '127.0.0.1', path: '/' + i, method: i % 2 ? 'POST' : 'GET', agent}, (response) => {
      let text = '';
      response.on('data', (part) => { text += part; });
      response.on('end', () => { try { assert.equal(response.statusCode, 200); assert.equal(text, 'ok'); resolve(); } catch (e) { reject(e); } });
    });
    request.on('error', reject);
    if (i % 2) request.write('x'.repeat(i * 100));
    request.end();
  });
}

async function overHTTP() {
  const agent = new http.Agent({keepAlive: true, maxSockets: 4});
  await Promise.all(Array.from({length: 100}, (_, i) => ask(agent, i)));
  agent.destroy();
}

async function overHTTP2() {
  const session = http2.connect('http://127.0.0.1:' + h2port);
  await Promise.all(Array.from({length: 100}, (_, i) => new Promise((resolve, reject) => {
    const stream = session.request({':path': '/' + i, ':method': 'POST'});
    let length = 0, status = 0;
    stream.on('response', (headers) => { status = headers[':status']; });
    stream.on('data', (part) => { length += part.length; });
    stream.on('error', reject);
    stream.on('end', () => { try { assert.equal(status, 200); assert.equal(length, i * 1000); resolve(); } catch (e) { reject(e); } });
    stream.end('x'.repeat(i * 1000));
  })));
  await new Promise((resolve) => session.close(resolve));
}

function overWebSocket() {
  return new Promise((resolve, reject) => {
    const request = http.request({port, host: '127.0.0.1', path: '/chat', headers: {
      Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': Buffer.from('0123456789abcdef').toString('base64')}});
    request.on('error', reject);
    request.on('response', (response) => reject(new Error('not upgraded: ' + response.statusCode)));
    request.on('upgrade', (response, socket) => {
      let got = Buffer.alloc(0);
      const text = Buffer.from('hello'), mask = Buffer.from([1, 2, 3, 4]);
      socket.on('error', reject);
      socket.on('data', (part) => {
        got = Buffer.concat([got, part]);
        if (got.length < 2 + text.length) return;
        assert.equal(got.subarray(2, 2 + text.length).toString(), 'hello');
        socket.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
      });
      socket.on('close', resolve);
      socket.on('end', () => socket.end());
      socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length]), mask, Buffer.from(text.map((b, i) => b ^ mask[i % 4]))]));
    });
    request.end();
  });
}

(async () => { await overHTTP(); await overHTTP2(); await overWebSocket(); console.log('done'); })()
  .catch((error) => { console.error(error); process.exit(1); });
