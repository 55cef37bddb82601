// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

// daemon is a process of the machine's own.
type daemon struct {
	name string
	args []string
}

const etcdURL, etcdPeerURL = "http://127.0.0.1:2379", "http://127.0.0.1:2380"

func etcd(s settings) daemon {
	return daemon{"etcd", []string{
		"--name=headgate",
		"--data-dir=" + s.run + "/etcd",
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + etcdPeerURL,
		"--initial-advertise-peer-urls=" + etcdPeerURL,
		"--initial-cluster=headgate=" + etcdPeerURL,
		// Safe against a killed process, not against a crashed machine.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}}
}

func apiserver(s settings) daemon {
	return daemon{"kube-apiserver", []string{
		"--etcd-servers=" + etcdURL,
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--advertise-address=" + machineIP,
		"--tls-cert-file=" + s.pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + s.pki("kube-apiserver.key"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.pki("service-account.pub"),
		"--service-account-signing-key-file=" + s.pki("service-account.key"),
		"--kubelet-client-certificate=" + s.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + s.pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + s.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + s.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + s.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + s.pki("front-proxy-client.key"),
		"--enable-aggregator-routing=true",
	}}
}

func controllerManager(s settings) daemon {
	return daemon{"kube-controller-manager", append(ownKubeconfig(s, "kube-controller-manager"),
		"--bind-address=127.0.0.1",
		"--tls-cert-file="+s.pki("kube-controller-manager.crt"),
		"--tls-private-key-file="+s.pki("kube-controller-manager.key"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file="+s.pki("ca.crt"),
		"--service-account-private-key-file="+s.pki("service-account.key"),
		"--cluster-signing-cert-file="+s.pki("ca.crt"),
		"--cluster-signing-key-file="+s.pki("ca.key"),
		"--service-cluster-ip-range="+serviceCIDR,
		// Tests of autoscaling should not wait for the usual 15s.
		"--horizontal-pod-autoscaler-sync-period=5s",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)}
}

func scheduler(s settings) daemon {
	return daemon{"kube-scheduler", append(ownKubeconfig(s, "kube-scheduler"),
		"--bind-address=127.0.0.1",
		"--tls-cert-file="+s.pki("kube-scheduler.crt"),
		"--tls-private-key-file="+s.pki("kube-scheduler.key"),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)}
}

func metricsServer(s settings) daemon {
	return daemon{"metrics-server", append(ownKubeconfig(s, "metrics-server"),
		fmt.Sprintf("--secure-port=%d", metricsPort),
		"--tls-cert-file="+s.pki("metrics-server.crt"),
		"--tls-private-key-file="+s.pki("metrics-server.key"),
		"--kubelet-certificate-authority="+s.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--metric-resolution=10s",
		// It must be shorter than the resolution.
		"--kubelet-request-timeout=5s",
	)}
}

func ownKubeconfig(s settings, name string) []string {
	path := s.pki(name + ".kubeconfig")
	return []string{"--kubeconfig=" + path, "--authentication-kubeconfig=" + path, "--authorization-kubeconfig=" + path}
}

// ensure starts the daemon unless it runs.
func (d daemon) ensure(s settings, st *state) error {
	if st.running(d.name) {
		return nil
	}
	return st.start(s, d.name, 0, append([]string{s.binary(d.name)}, d.args...)...)
}

func ensureControlPlane(ctx context.Context, s settings, st *state) error {
	for _, d := range []daemon{etcd(s), apiserver(s)} {
		if err := d.ensure(s, st); err != nil {
			return err
		}
	}
	api, err := newAPI(s)
	if err != nil {
		return err
	}
	// With an empty etcd the others would end at once, were they started before
	// kube-apiserver has written the roles that they need.
	if err := waitFor(ctx, "kube-apiserver", st.watch(s, "kube-apiserver"), api.ready); err != nil {
		return err
	}
	for _, d := range []daemon{controllerManager(s), scheduler(s)} {
		if err := d.ensure(s, st); err != nil {
			return err
		}
	}
	// Pods cannot be made before the controller-manager has made this account.
	return waitFor(ctx, "default service account", st.watch(s, "kube-controller-manager"), api.defaultAccount)
}
