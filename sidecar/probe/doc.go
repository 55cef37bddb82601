// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe runs the app's own probes and hooks for the kubelet, on loopback. Where the app's ports are redirected to
// the sidecar, a probe sent to the app would be limited as any request, and the sidecar's open port would hide an app with
// nothing listening. So the kubelet asks the sidecar, which asks the app what the app's author wrote, and nothing else: a
// caller chooses among the probes of the pod, and gets a status without a body.
//
//	kubelet ── GET :14190/probe/app/readiness ──▶ sidecar ── GET 127.0.0.1:8080/healthz ──▶ app
package probe
