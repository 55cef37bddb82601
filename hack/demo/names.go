// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/headgate/headgate/test/load"
)

// What the demo makes in the cluster.
const (
	namespace = "headgate-demo"
	appName   = "checkout"
	sample    = "config/samples/checkout.yaml"
)

// pinned is the key of the client that keeps one connection.
const pinned = "pinned"

// clients offer 600 requests per second, three times the limit of the sample: each of 15 API keys asks for twice what it
// may have, and all keys together may have more than the service.
func clients() []load.Client {
	const each = 40
	list := []load.Client{{Key: pinned, Rate: each, Connections: load.Pinned}}
	for i := range 8 {
		list = append(list, load.Client{Key: fmt.Sprintf("new-%d", i+1), Rate: each, Connections: load.New})
	}
	for i := range 6 {
		list = append(list, load.Client{Key: fmt.Sprintf("pool-%d", i+1), Rate: each, Connections: load.Renewed})
	}
	return list
}
