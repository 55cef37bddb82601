// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test runs itself twice more: once as a pod in a network of its own, and once as a client in another one, joined to it
// by a cable. Neither needs to be root, and nothing outside is changed.
const envRole = "HEADGATE_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envRole) {
	case "pod":
		err = pod()
	case "client":
		err = client(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestWhatComesFromOutsideReachesTheSidecarAndLoopbackDoesNot(t *testing.T) {
	cmd := role("pod")
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func role(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func ip(words string) error {
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", words, err, out)
	}
	return nil
}

// pod has an app on 8080, another one on 9090 that nobody redirects, and a sidecar on 14101. Each answers with its name.
func pod() error {
	cmd := role("client")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for _, words := range []string{
		"link set lo up", "link add eth0 type veth peer name cable", fmt.Sprintf("link set cable netns %d", cmd.Process.Pid),
		"addr add 10.9.0.2/24 dev eth0", "addr add fd09::2/64 dev eth0 nodad", "link set eth0 up",
	} {
		if err := ip(words); err != nil {
			return err
		}
	}
	for port, name := range map[string]string{"8080": "app", "9090": "other", "14101": "sidecar"} {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		go serve(l, name)
	}
	network := Network{HostIPs: "192.0.2.1", PodIPs: "10.9.0.2,fd09::2", Source: "api"}
	for range 3 { // a container may run again
		if err := Apply(network, []Pair{{Listener: 14101, App: 8080}}); err != nil {
			return err
		}
	}
	var errs []error
	for address, want := range map[string]string{
		"127.0.0.1:8080": "app", "[::1]:8080": "app", "10.9.0.2:8080": "app", "[fd09::2]:8080": "app", "127.0.0.1:14101": "sidecar",
	} {
		if got, err := ask(address); err != nil || got != want {
			errs = append(errs, fmt.Errorf("inside of the pod %s answers at %s (error %w), want %s", got, address, err, want))
		}
	}
	answers := bufio.NewReader(pipe)
	for address, want := range map[string]string{
		"10.9.0.2:8080": "sidecar", "[fd09::2]:8080": "sidecar", "10.9.0.2:9090": "other", "[fd09::2]:9090": "other", "10.9.0.2:14101": "sidecar",
	} {
		if _, err := fmt.Fprintln(in, address); err != nil {
			return err
		}
		if got, err := answers.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			errs = append(errs, fmt.Errorf("from outside %q answers at %s (error %w), want %s", got, address, err, want))
		}
	}
	// Rules of an earlier run go, rather than stand beside the new ones.
	if err := Apply(network, []Pair{{Listener: 14101, App: 9090}}); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(in, "10.9.0.2:8080"); err != nil {
		return err
	}
	if got, err := answers.ReadString('\n'); err != nil || strings.TrimSpace(got) != "app" {
		errs = append(errs, fmt.Errorf("the older rule is still there: %q answers (%w)", got, err))
	}
	// The program looks for itself, too: here an interface has what is said to be the node's address.
	if err := Apply(Network{HostIPs: "10.9.0.2", PodIPs: "10.9.0.3"}, nil); !errors.Is(err, ErrRefused) {
		errs = append(errs, fmt.Errorf("rules were written in a network that has the node's address: %w", err))
	}
	return errors.Join(errs...)
}

func serve(l net.Listener, name string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, name)
		_ = conn.Close()
	}
}

func ask(address string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// client connects to each address that it is told, and says who answered.
func client(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for first := true; lines.Scan(); first = false {
		if first {
			for _, words := range []string{"addr add 10.9.0.1/24 dev cable", "addr add fd09::1/64 dev cable nodad", "link set cable up"} {
				if err := ip(words); err != nil {
					return err
				}
			}
		}
		answer := ""
		var err error
		for range 100 { // the cable needs a moment
			if answer, err = ask(lines.Text()); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}
