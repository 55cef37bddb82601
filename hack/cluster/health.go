// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"time"
)

// kubeletHealthy asks the kubelet itself, over the bridge.
func kubeletHealthy(ctx context.Context, n node) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return getJSON(ctx, client, "http://"+n.IP()+":10248/healthz", nil)
}
