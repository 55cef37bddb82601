// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"
)

func linkExists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// createBridge makes the link between the machine and its nodes. kube-apiserver
// advertises the bridge's address, so it must be there first.
func createBridge() error {
	if !linkExists(bridgeName) {
		if err := command("ip", "link", "add", bridgeName, "type", "bridge"); err != nil {
			return err
		}
	}
	if err := command("ip", "addr", "replace", machineIP+"/24", "dev", bridgeName); err != nil {
		return err
	}
	return command("ip", "link", "set", bridgeName, "up")
}

// joinBridge gives the network namespace of a node its eth0 and leads the
// machine's traffic for the node's pods there. Services are reached through the
// first node, whose kube-proxy translates their addresses.
func joinBridge(n node, pid int) error {
	if err := command("ip", "link", "add", n.link(), "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid)); err != nil {
		return err
	}
	if err := command("ip", "link", "set", n.link(), "master", bridgeName, "up"); err != nil {
		return err
	}
	routes := []string{n.PodCIDR()}
	if n == nodes[0] {
		routes = append(routes, serviceCIDR)
	}
	for _, r := range routes {
		if err := command("ip", "route", "replace", r, "via", n.IP(), "dev", bridgeName); err != nil {
			return err
		}
	}
	return nil
}

// removeLink is for what a node leaves behind; its routes go with the bridge.
func removeLink(name string) error {
	if !linkExists(name) {
		return nil
	}
	// The kernel removes a dead node's links itself, perhaps just now.
	if err := command("ip", "link", "del", name); err != nil && linkExists(name) {
		return fmt.Errorf("link: %w", err)
	}
	return nil
}
