// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/headgate/headgate/test/port"
)

// Prometheus is a real one, on this machine's loopback. Whoever starts it ends it.
type Prometheus struct {
	URL string
	*Daemon
}

// StartPrometheus starts one by a configuration, in a folder of its own.
func StartPrometheus(ctx context.Context, dir string, config []byte) (*Prometheus, error) {
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	at, err := port.Free()
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(at))
	d, err := StartDaemon(filepath.Join(dir, "prometheus.log"), "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	if err != nil {
		return nil, err
	}
	p := &Prometheus{URL: "http://" + address, Daemon: d}
	if err := Wait(ctx, 30*time.Second, "prometheus", func(ctx context.Context) error {
		return errors.Join(d.Err(), get(ctx, p.URL+"/-/ready", nil))
	}); err != nil {
		d.Stop()
		return nil, fmt.Errorf("%w; its log: %s", err, d.Log())
	}
	return p, nil
}

// Sample is one series of an answer.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Sample, error) {
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := get(ctx, p.URL+"/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var out []Sample
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", expr, err)
		}
		out = append(out, Sample{r.Metric, v})
	}
	return out, nil
}

// Number is the one value of an expression.
func (p *Prometheus) Number(ctx context.Context, expr string) (float64, error) {
	samples, err := p.Query(ctx, expr)
	if err != nil {
		return 0, err
	}
	if len(samples) != 1 {
		return 0, fmt.Errorf("query %s: %d series, not one", expr, len(samples))
	}
	return samples[0].Value, nil
}

// Get asks for another path of the API and reads the JSON of the answer.
func (p *Prometheus) Get(ctx context.Context, path string, into any) error {
	return get(ctx, p.URL+path, into)
}

func get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, body.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body.Bytes(), into)
}

// Daemon is a program beside the test.
type Daemon struct {
	log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// StartDaemon starts a program whose output goes to a file.
func StartDaemon(log, program string, args ...string) (*Daemon, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", program, err)
	}
	defer out.Close()
	d := &Daemon{log: log, cmd: exec.Command(program, args...), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = out, out
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	go func() {
		defer close(d.done)
		d.err = d.cmd.Wait()
	}()
	return d, nil
}

// Err tells whether the program has ended, which it should not.
func (d *Daemon) Err() error {
	select {
	case <-d.done:
		return fmt.Errorf("%w: it has ended: %w", ErrStop, errors.Join(d.err, errors.New(d.Log())))
	default:
		return nil
	}
}

// Log is what the program has said.
func (d *Daemon) Log() string {
	raw, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Stop ends the program.
func (d *Daemon) Stop() {
	_ = d.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-d.done:
	case <-time.After(10 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}
