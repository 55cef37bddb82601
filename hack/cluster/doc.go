// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// The control plane is ordinary processes. Each node is one tree of processes
// in network, mount, pid and uts namespaces of its own, joined to the machine by
// a bridge:
//
//	machine ── hgbr0 172.30.0.1/24 ──┬── node1 172.30.0.2   pods 10.244.1.0/24
//	 etcd, kube-apiserver,           └── node2 172.30.0.3   pods 10.244.2.0/24
//	 controller-manager, scheduler,
//	 metrics-server                       services 10.96.0.0/16
//
// Ending a node's pid 1 ends its containers, mounts, rules and links with it;
// only its cgroups are removed one by one. The machine gets no packet filter
// rules and does not forward; it has routes to pods and services, so that tests,
// admission webhooks and aggregated APIs are reached without a proxy.
//
// Two differences to most clusters: each node reports the whole machine's
// processors and memory, and the network plugin does not enforce NetworkPolicies.
//
// Every step of `up` first looks whether its work is done already. That makes a
// second `up` a repair, and a killed one harmless.
