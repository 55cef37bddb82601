// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/probe"
	"github.com/headgate/headgate/sidecar/proxy/http1"
)

// Config is what the program is told by its environment and flags.
type Config struct {
	Pod      string     // namespace/name, for people
	Ports    []PortPair // may be empty: then only the decision doors are served
	Operator string     // host:port
	Record   string     // folder, or empty
	Probes   quotav1.Probes

	TokenFile    string
	CAFile       string
	AdminAddress string
	LocalAddress string
	Keys         int
	Grace        time.Duration
	Limits       http1.Limits // of what clients may make the proxies hold
	Debug        bool
}

// PortPair is an inbound listener and the application's port that it leads to.
type PortPair struct {
	Listener, App int
}

// parseConfig reads flags; the environment gives their defaults. It returns flag.ErrHelp when help was asked for.
func parseConfig(args []string, getenv func(string) string, out io.Writer) (*Config, error) {
	c := &Config{}
	var ports, probes string
	f := flag.NewFlagSet("headgate-sidecar", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() { usage(out, f) }
	f.StringVar(&ports, "ports", getenv(quotav1.EnvPorts), "listener=application `pairs`, such as 14101=8080,14102=9090 ($"+quotav1.EnvPorts+")")
	f.StringVar(&c.Operator, "operator", getenv(quotav1.EnvOperator), "`host:port` of the operator's quota service ($"+quotav1.EnvOperator+")")
	f.StringVar(&c.Pod, "pod", getenv(quotav1.EnvPod), "`namespace/name` of the pod, for logs ($"+quotav1.EnvPod+")")
	f.StringVar(&c.Record, "record", getenv(quotav1.EnvRecord), "`folder` for decision records, for tests ($"+quotav1.EnvRecord+")")
	f.StringVar(&probes, "probes", getenv(quotav1.EnvProbes), "the app's probes that the kubelet asks for here, as `JSON` ($"+quotav1.EnvProbes+")")
	f.StringVar(&c.TokenFile, "token-file", quotav1.FileToken, "ServiceAccount token presented to the operator")
	f.StringVar(&c.CAFile, "ca-file", quotav1.FileCA, "CA bundle that the operator's certificate must come from")
	f.StringVar(&c.AdminAddress, "admin-address", ":"+strconv.Itoa(quotav1.PortAdmin), "`address` of probes and metrics")
	f.StringVar(&c.LocalAddress, "local-address", localAddress, "loopback `address` of live state, decisions and drain")
	f.IntVar(&c.Keys, "keys", admission.DefaultKeys, "keys that each limit with a key has memory for, 18 bytes each")
	c.Limits = http1.DefaultLimits()
	f.IntVar(&c.Limits.Head, "max-head", c.Limits.Head, "most bytes of a request's head, 65535 at most")
	f.IntVar(&c.Limits.Fields, "max-fields", c.Limits.Fields, "most lines of a request's header")
	f.DurationVar(&c.Limits.HeadTime, "head-timeout", c.Limits.HeadTime, "how long a request's head may take from its first byte on")
	f.DurationVar(&c.Limits.Idle, "idle-timeout", c.Limits.Idle, "how long a client's connection is kept between requests: longer than the load balancer in front keeps it")
	f.DurationVar(&c.Grace, "grace", 25*time.Second, "how long requests in flight may take after SIGTERM")
	f.BoolVar(&c.Debug, "debug", false, "log more")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unknown command %q: try --help", f.Arg(0))
	}
	if c.Pod == "" {
		c.Pod, _ = os.Hostname()
	}
	var badPorts, badProbes error
	c.Ports, badPorts = parsePorts(ports)
	c.Probes, badProbes = probe.Parse(probes)
	return c, errors.Join(badPorts, badProbes, c.validate())
}

// localAddress is where the drain hook and people inside the pod look.
var localAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(quotav1.PortLocal))

func (c *Config) validate() error {
	var errs []error
	if c.Operator == "" {
		errs = append(errs, fmt.Errorf("no operator: set %s or --operator to host:port", quotav1.EnvOperator))
	} else if host, port, err := net.SplitHostPort(c.Operator); err != nil || host == "" || port == "" {
		errs = append(errs, fmt.Errorf("operator %q is not host:port", c.Operator))
	}
	if host, _, err := net.SplitHostPort(c.LocalAddress); err != nil {
		errs = append(errs, fmt.Errorf("local address %q: %w", c.LocalAddress, err))
	} else if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		// Whoever reaches this server can drain the pod and spend its tokens.
		errs = append(errs, fmt.Errorf("local address %q is not on loopback", c.LocalAddress))
	}
	if c.Keys < 1 || c.Keys > 1<<24 {
		errs = append(errs, fmt.Errorf("keys %d is not between 1 and %d", c.Keys, 1<<24))
	}
	if c.Limits.Head < 1024 || c.Limits.Head > 65535 {
		errs = append(errs, fmt.Errorf("max-head %d is not between 1024 and 65535", c.Limits.Head))
	}
	if c.Limits.Fields < 16 || c.Limits.Fields > 10_000 {
		errs = append(errs, fmt.Errorf("max-fields %d is not between 16 and 10000", c.Limits.Fields))
	}
	if c.Limits.HeadTime <= 0 || c.Limits.Idle <= 0 {
		errs = append(errs, fmt.Errorf("head-timeout %v and idle-timeout %v must be above 0, such as 10s", c.Limits.HeadTime, c.Limits.Idle))
	}
	if c.Grace < 0 {
		errs = append(errs, fmt.Errorf("grace %v is negative", c.Grace))
	}
	return errors.Join(errs...)
}

// parsePorts reads "14101=8080,14102=9090".
func parsePorts(s string) ([]PortPair, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var pairs []PortPair
	seen := map[int]bool{}
	for word := range strings.SplitSeq(s, ",") {
		left, right, ok := strings.Cut(strings.TrimSpace(word), "=")
		listener, err1 := strconv.ParseUint(left, 10, 16)
		app, err2 := strconv.ParseUint(right, 10, 16)
		if !ok || err1 != nil || err2 != nil || listener == 0 || app == 0 {
			return nil, fmt.Errorf("ports: %q is not listener=application, such as %d=8080", word, quotav1.PortInbound)
		}
		p := PortPair{int(listener), int(app)}
		if p.Listener == p.App {
			return nil, fmt.Errorf("ports: %q would forward to itself", word)
		}
		if seen[p.Listener] {
			return nil, fmt.Errorf("ports: listener %d twice", p.Listener)
		}
		seen[p.Listener] = true
		pairs = append(pairs, p)
	}
	if len(pairs) > quotav1.MaxInbound {
		return nil, fmt.Errorf("ports: %d pairs, at most %d", len(pairs), quotav1.MaxInbound)
	}
	return pairs, nil
}
