// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// api is the administrator's view of kube-apiserver: the few reads that `up` and
// `status` need.
type api struct {
	client *http.Client
	server string
}

func newAPI(s settings) (*api, error) {
	cert, err := tls.LoadX509KeyPair(s.pki("admin.crt"), s.pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("admin certificate: %w", err)
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("certificate authority: not a certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}}
	return &api{
		client: &http.Client{Transport: transport, Timeout: 5 * time.Second},
		server: fmt.Sprintf("https://127.0.0.1:%d", apiPort),
	}, nil
}

func (a *api) get(ctx context.Context, path string, into any) error {
	return getJSON(ctx, a.client, a.server+path, into)
}

// getJSON decodes an answer with status 200; into may be nil.
func getJSON(ctx context.Context, client *http.Client, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

func (a *api) ready(ctx context.Context) error { return a.get(ctx, "/readyz", nil) }

func (a *api) defaultAccount(ctx context.Context) error {
	return a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
}

// nodeReady wants a report of the kubelet that is not older than since: what an
// earlier kubelet reported stays Ready for a while after its end.
func (a *api) nodeReady(ctx context.Context, name string, since time.Time) error {
	var n struct {
		Status struct {
			Conditions []struct {
				Type, Status, Message string
				LastHeartbeatTime     time.Time
			}
		}
	}
	if err := a.get(ctx, "/api/v1/nodes/"+name, &n); err != nil {
		return err
	}
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != "Ready":
		case c.Status != "True":
			return errors.New(c.Message)
		case c.LastHeartbeatTime.Before(since.Truncate(time.Second)):
			return errors.New("no report since its start")
		default:
			return nil
		}
	}
	return errors.New("no report yet")
}

func (a *api) deploymentReady(ctx context.Context, namespace, name string) error {
	var d struct {
		Spec   struct{ Replicas int }
		Status struct{ UpdatedReplicas, AvailableReplicas int }
	}
	if err := a.get(ctx, fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/%s", namespace, name), &d); err != nil {
		return err
	}
	if d.Status.AvailableReplicas < d.Spec.Replicas || d.Status.UpdatedReplicas < d.Spec.Replicas {
		return fmt.Errorf("%d of %d replicas are available", d.Status.AvailableReplicas, d.Spec.Replicas)
	}
	return nil
}
