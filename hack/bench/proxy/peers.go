// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// Every peer does the same work: it passes on what is under /ok/, /key/ and gRPC with a limit that never denies, and denies
// what is under /no/. One worker each.

func (s *setup) startNginx() error {
	c := &contender{name: nginx, http: s.address(), rpc: s.address(), limits: true}
	folder := filepath.Join(s.folder, "nginx")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	config := fmt.Sprintf(`
worker_processes 1;
daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log crit;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 1000000000;
  limit_req_status 429;
  limit_req_zone $binary_remote_addr zone=ok:1m rate=1000000r/s;
  limit_req_zone $binary_remote_addr zone=no:1m rate=1r/m;
  limit_req_zone $http_x_api_key zone=key:16m rate=1000000r/s;
  upstream app { server %[2]s; keepalive 512; keepalive_requests 1000000000; }
  upstream rpc { server %[3]s; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen %[4]s backlog=1024;
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; limit_req zone=ok burst=100000 nodelay; }
    location /no/ { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; limit_req zone=no; }
    location /key/ { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; limit_req zone=key burst=100000 nodelay; }
  }
  server {
    listen %[5]s http2;
    location / { grpc_pass grpc://rpc; limit_req zone=ok burst=100000 nodelay; }
  }
}
`, folder, s.app.http, s.app.rpc, c.http, c.rpc)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	return s.run(c, nil, "nginx", "-p", folder, "-c", file)
}

func (s *setup) startHAProxy() error {
	c := &contender{name: haproxy, http: s.address(), rpc: s.address(), limits: true}
	config := fmt.Sprintf(`
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend http
  bind %[1]s
  acl no path_beg /no/
  acl key path_beg /key/
  http-request track-sc0 src table ok if !no !key
  http-request track-sc0 hdr(x-api-key) table key if key
  http-request track-sc1 src table no if no
  http-request deny deny_status 429 if no { sc_http_req_rate(1) gt 1 }
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }
  default_backend app
backend ok
  stick-table type ip size 1k expire 60s store http_req_rate(10s)
backend no
  stick-table type ip size 1k expire 60s store http_req_rate(10s)
backend key
  stick-table type string len 32 size 100k expire 60s store http_req_rate(10s)
backend app
  http-reuse always
  server app %[2]s
frontend rpc
  bind %[3]s proto h2
  http-request track-sc0 src table ok
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }
  default_backend rpc
backend rpc
  http-reuse always
  server rpc %[4]s proto h2
`, c.http, s.app.http, c.rpc, s.app.rpc)
	file := filepath.Join(s.folder, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	return s.run(c, nil, "haproxy", "-db", "-f", file)
}

func (s *setup) startCaddy() error {
	c := &contender{name: caddy, http: s.address(), rpc: s.address()}
	config := fmt.Sprintf(`
{
	admin off
	auto_https off
	log {
		level ERROR
	}
	servers {
		protocols h1 h2c
	}
}
http://%[1]s {
	reverse_proxy http://%[2]s {
		transport http {
			keepalive_idle_conns_per_host 1024
		}
	}
}
http://%[3]s {
	reverse_proxy h2c://%[4]s
}
`, c.http, s.app.http, c.rpc, s.app.rpc)
	file := filepath.Join(s.folder, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	return s.run(c, []string{"GOMAXPROCS=1", "HOME=" + s.folder}, "caddy", "run", "--adapter", "caddyfile", "--config", file)
}

func (s *setup) startGoProxy() error {
	c := &contender{name: goProxy, http: s.address(), limits: true}
	return s.run(c, []string{"GOMAXPROCS=1"}, s.self, "reverseproxy", c.http, s.app.http)
}

func (s *setup) startGnet() error {
	c := &contender{name: blind, http: s.address()}
	return s.run(c, []string{"GOMAXPROCS=1"}, s.self, "gnet", c.http, s.app.http)
}
