// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/sidecar/admin"
)

// atOnce is how many pods are asked at a time: each is a connection of the API server to a kubelet.
const atOnce = 16

// interviewer asks sidecars for their state, and keeps the ways to them open between two rounds.
type interviewer struct {
	session *session
	// patience is how long a sidecar may take to answer.
	patience time.Duration

	mu      sync.Mutex
	tunnels map[types.UID]*tunnel
}

func (s *session) interviewer(patience time.Duration) *interviewer {
	return &interviewer{session: s, patience: patience, tunnels: map[types.UID]*tunnel{}}
}

// Close hangs up.
func (i *interviewer) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for uid, t := range i.tunnels {
		t.close()
		delete(i.tunnels, uid)
	}
}

// ask fills in the answers of the pods that carry the sidecar.
func (i *interviewer) ask(ctx context.Context, pods []*fleet.Pod) {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, p := range pods {
		if p.Injected() && p.Spec.NodeName != "" {
			all.Go(func() error {
				p.Answer = i.one(ctx, p)
				return nil
			})
		}
	}
	_ = all.Wait()
}

// one asks one pod. A way that was kept open and no longer leads anywhere is opened anew, once.
func (i *interviewer) one(ctx context.Context, p *fleet.Pod) fleet.Answer {
	ctx, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	i.mu.Lock()
	t := i.tunnels[p.UID]
	delete(i.tunnels, p.UID)
	i.mu.Unlock()
	for kept := t != nil; ; kept = false {
		if t == nil {
			var err error
			if t, err = i.session.dig(ctx, p.Namespace, p.Name); err != nil {
				return failed(err, false)
			}
		}
		begin := time.Now()
		state := &admin.State{}
		err := t.call(ctx, http.MethodGet, quotav1.PathState, nil, state)
		if err == nil {
			i.mu.Lock()
			i.tunnels[p.UID] = t
			i.mu.Unlock()
			return fleet.Answer{Outcome: fleet.Answered, State: state, At: begin.Add(time.Since(begin) / 2)}
		}
		t.close()
		if !kept || ctx.Err() != nil {
			return failed(err, true)
		}
		t = nil
	}
}

// failed says what an error means; through says that the way to the pod was open.
func failed(err error, through bool) fleet.Answer {
	out := fleet.Answer{Outcome: fleet.Unreachable, Error: err.Error(), At: time.Now()}
	switch {
	case apierrors.IsForbidden(err) || strings.Contains(strings.ToLower(err.Error()), "forbidden"):
		out.Outcome = fleet.Forbidden
	case errors.Is(err, errRefused):
		out.Outcome = fleet.Closed
	case through && errors.Is(err, context.DeadlineExceeded):
		out.Outcome = fleet.Silent
	}
	return out
}

// call asks the sidecar at the end of a tunnel on its loopback port, and reads the answer.
func (t *tunnel) call(ctx context.Context, method, path string, question, answer any) error {
	var body io.Reader
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return fmt.Errorf("question: %w", err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return t.dial(quotav1.PortLocal)
	}}}
	response, err := web.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("it breaks off: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		var told struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(raw, &told) == nil && told.Error != "" {
			return errors.New(told.Error)
		}
		return fmt.Errorf("it answered %s: its sidecar may be of an older release", response.Status)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// maxAnswer bounds what is read of a sidecar's answer.
const maxAnswer = 16 << 20
