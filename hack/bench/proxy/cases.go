// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// goal is what a case is to show: a ratio of ours to a peer's.
type goal struct {
	what  string
	peer  string
	unit  string
	of    func(ours, peer, direct result) float64 // the ratio
	value func(r, direct result) float64          // what is compared
	most  float64                                 // the ratio may be this at most, or
	least float64                                 // has to be this at least
}

func throughput(peer string, least float64) goal {
	return goal{what: "throughput", peer: peer, unit: "requests/s", least: least,
		value: func(r, _ result) float64 { return r.perSecond }}
}

func processor(peer string, most float64) goal {
	return goal{what: "CPU per request", peer: peer, unit: "us", most: most,
		value: func(r, _ result) float64 { return r.cpu }}
}

func addedMedian(peer string, most float64) goal {
	return goal{what: "added p50", peer: peer, unit: "us", most: most,
		value: func(r, direct result) float64 { return r.p50 - direct.p50 }}
}

func addedTail(peer string, most float64) goal {
	return goal{what: "added p99", peer: peer, unit: "us", most: most,
		value: func(r, direct result) float64 { return r.p99 - direct.p99 }}
}

func cases() []kase {
	return []kase{
		{name: "1 connection, 0.1 KB", connections: 1, path: "/ok/128", goals: []goal{addedMedian(nginx, 0.6)}},
		{name: "32 connections, 0.1 KB", connections: 32, path: "/ok/128", goals: []goal{
			throughput(nginx, 1.0), throughput(goProxy, 2.3), processor(nginx, 0.95), processor(haproxy, 0.85), addedTail(nginx, 1.0)}},
		{name: "256 connections, 0.1 KB", connections: 256, path: "/ok/128"},
		{name: "32 connections, 10 KB", connections: 32, path: "/ok/10240"},
		{name: "32 connections, 100 KB", connections: 32, path: "/ok/102400"},
		{name: "32 connections, 10,000 keys", connections: 32, path: "/key/128", script: keyScript},
		{name: "32 connections, 90 % denied", connections: 32, path: "/", script: mixScript, denied: 0.9, limited: true},
		{name: "32 connections, all denied", connections: 32, path: "/no/128", denied: 1, limited: true, goals: []goal{processor(nginx, 0.7)}},
		{name: "gRPC unary, 8 connections, 10 calls each", connections: 8, path: "/grpc.health.v1.Health/Check", rpc: true, goals: []goal{throughput(nginx, 0.8)}},
	}
}
