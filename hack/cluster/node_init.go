// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const containerdSocket = "/run/containerd/containerd.sock"

// nodeInit is pid 1 of a node: it furnishes the namespaces that it was started
// in, then keeps containerd, kubelet and kube-proxy running. It returns only on
// an error, and with it the whole node ends.
func nodeInit(s settings, name string) error {
	n, err := nodeNamed(name)
	if err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("%s: it is for `up` to call", nodeInitCommand)
	}
	if err := syscall.Sethostname([]byte(n.Name())); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := mountNode(s, n); err != nil {
		return err
	}
	if err := connectNode(n); err != nil {
		return err
	}
	return runNode(s, n)
}

// mountNode makes the node's view of the file system. First of all it cuts the
// propagation to the machine: no mount of a node is ever seen there.
func mountNode(s settings, n node) error {
	const rec = syscall.MS_REC
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|rec, ""); err != nil {
		return fmt.Errorf("mount /: %w", err)
	}
	// Inside of the node, volumes must reach the containers that share them.
	if err := syscall.Mount("", "/", "", syscall.MS_SHARED|rec, ""); err != nil {
		return fmt.Errorf("mount /: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range hiddenInNodes {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	podLogs := filepath.Join(s.nodeDir(n), "pod-logs")
	for _, dir := range []string{podLogs, filepath.Join(s.nodeDir(n), "kubelet"), "/run/lock", "/run/netns",
		filepath.Dir(containerdSocket), "/var/log/pods", "/var/log/containers"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("folder: %w", err)
		}
	}
	// Logs of pods may be large: on disk, not in memory.
	if err := syscall.Mount(podLogs, "/var/log/pods", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /var/log/pods: %w", err)
	}
	if err := hideSysctls(); err != nil {
		return err
	}
	return giveBootID()
}

// giveBootID lets the node tell its lives apart, as a machine does: the real one is the machine's, and stays.
func giveBootID() error {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return fmt.Errorf("boot id: %w", err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // a UUID of version 4
	cover := "/run/headgate-boot-id"
	if err := writeFile(cover, fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), 0o444); err != nil {
		return err
	}
	if err := syscall.Mount(cover, filepath.Join(sysctlRoot, "kernel/random/boot_id"), "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount boot id: %w", err)
	}
	return nil
}

// hideSysctls covers the settings of kubeletSysctls with files of the same names.
func hideSysctls() error {
	for name, value := range kubeletSysctls {
		path := filepath.Join(sysctlRoot, name)
		if _, err := os.Stat(path); err != nil {
			continue // this kernel has no such setting
		}
		cover := filepath.Join("/run/headgate-sysctls", name)
		if err := writeFile(cover, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(cover, path, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	return nil
}

// connectNode waits for the link that `up` pushes into the node's network
// namespace and configures it.
func connectNode(n node) error {
	deadline := time.Now().Add(20 * time.Second)
	for !linkExists("eth0") {
		if time.Now().After(deadline) {
			return fmt.Errorf("link eth0: not there after 20s")
		}
		time.Sleep(10 * time.Millisecond)
	}
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "addr", "add", n.IP() + "/24", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "route", "add", "default", "via", machineIP},
	}
	for _, other := range nodes {
		if other != n {
			commands = append(commands, []string{"ip", "route", "add", other.PodCIDR(), "via", other.IP()})
		}
	}
	for _, c := range commands {
		if err := command(c...); err != nil {
			return err
		}
	}
	// All of these belong to the node's network namespace.
	for _, name := range []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/bridge/bridge-nf-call-iptables"} {
		if err := os.WriteFile(filepath.Join(sysctlRoot, name), []byte("1"), 0o644); err != nil {
			return fmt.Errorf("sysctl: %w", err)
		}
	}
	return nil
}

func runNode(s settings, n node) error {
	sup := newSupervisor(s, n)
	dir := s.nodeDir(n)
	sup.keep("containerd", "--config="+dir+"/containerd.toml")
	if err := waitForSocket(containerdSocket, time.Minute); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(s.images, "*.tar"))
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	for _, archive := range archives {
		if err := sup.run("ctr", "--namespace=k8s.io", "images", "import", archive); err != nil {
			return err
		}
	}
	log.Printf("%d images imported", len(archives))
	sup.keep("kubelet",
		"--config="+dir+"/kubelet.yaml",
		"--kubeconfig="+s.pki("kubelet-"+n.Name()+".kubeconfig"),
		"--root-dir="+dir+"/kubelet",
		"--hostname-override="+n.Name(),
		"--node-ip="+n.IP(),
		"--v=2")
	sup.keep("kube-proxy", "--config="+dir+"/kube-proxy.yaml")
	select {}
}

func waitForSocket(path string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("socket after %s: %w", limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
