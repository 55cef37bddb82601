// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/cmd/kubectl-headgate/meter"
)

// leastInterval bounds how often all sidecars are asked.
const leastInterval = 500 * time.Millisecond

// topOptions are the flags of top.
type topOptions struct {
	all, once, pods bool
	interval        time.Duration
	output          string
}

func newTop(s *session) *cobra.Command {
	o := &topOptions{}
	c := &cobra.Command{
		Use:   "top [POLICY]",
		Short: "Watch what is offered, admitted and denied, limit by limit",
		Long: `Watches limits at work: requests per second that were offered, admitted and denied, over all pods, and how much of each limit
was used. Two looks at the sidecars, --interval apart, make one table.

On a terminal the table is drawn anew in place, with bars; else each table is written below the one before. A limit with a key has no
USE: each key has the limit to itself. Of a limit in shadow mode DENIED is what it would deny. LIMIT/S of scope PerPod grows with the pods.`,
		Example: `  # All limits of a namespace, until Ctrl-C
  kubectl headgate top -n shop

  # One policy, each of its pods, every second
  kubectl headgate top checkout -n shop --pods --interval 1s

  # For a script
  kubectl headgate top -A --once -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completePolicies,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.interval < leastInterval {
				return fmt.Errorf("--interval %s: write at least %s", o.interval, leastInterval)
			}
			if o.output != "" && !o.once {
				return errors.New("--output needs --once: programs read one table")
			}
			if err := s.connect(); err != nil {
				return err
			}
			return s.top(cmd.Context(), args, o)
		},
	}
	allNamespaces(c, &o.all)
	c.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	c.Flags().BoolVar(&o.once, "once", false, "print one table and end")
	c.Flags().BoolVar(&o.pods, "pods", false, "add a row for each pod")
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml, with --once; a table when absent")
	return c
}

// top looks again and again, until the context ends.
func (s *session) top(ctx context.Context, args []string, o *topOptions) error {
	asking := s.interviewer(max(shortPatience, o.interval))
	defer asking.Close()
	look := func() (*view, error) { return s.look(ctx, asking, args, o.all) }
	before, err := look()
	if err != nil {
		return err
	}
	if len(before.policies) == 0 {
		return errors.New("there are no policies here: name another namespace by -n, or look at all by -A")
	}
	var screen *screen
	if !o.once {
		screen = newScreen(s.streams.Out)
	}
	defer screen.close()
	screen.draw([]string{"looking ..."})
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := look()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if o.once {
				return err
			}
			// The API server may be back the next time.
			screen.draw([]string{"error: " + err.Error()})
			if screen == nil {
				fmt.Fprintln(s.streams.ErrOut, "error:", err)
			}
			continue
		}
		rows := meter.Rates(before.sample, now.sample, now.covers, o.pods)
		switch {
		case o.output != "":
			return printObject(s.streams.Out, o.output, "json or yaml", map[string]any{"limits": rows})
		case screen != nil:
			screen.draw(append([]string{now.says(o.interval), ""}, meter.Table(rows, screen.style())...))
		default:
			if !o.once {
				fmt.Fprintln(s.streams.Out, time.Now().Format(time.RFC3339))
			}
			for _, line := range meter.Table(rows, meter.Style{}) {
				fmt.Fprintln(s.streams.Out, line)
			}
		}
		if o.once {
			if now.answered < now.asked {
				fmt.Fprintf(s.streams.ErrOut, "%d of %d sidecars do not answer: kubectl headgate doctor says why\n", now.asked-now.answered, now.asked)
			}
			return nil
		}
		before = now
	}
}

// view is one look at policies and their pods.
type view struct {
	policies        map[string]bool
	sample          meter.Sample
	asked, answered int
}

func (s *session) look(ctx context.Context, asking *interviewer, args []string, all bool) (*view, error) {
	policies, err := s.policies(ctx, all, args...)
	if err != nil {
		return nil, err
	}
	found, err := s.fleet(ctx, policies)
	if err != nil {
		return nil, err
	}
	asking.ask(ctx, distinct(found))
	v := &view{policies: map[string]bool{}, sample: meter.Sample{}}
	for i := range found {
		v.policies[found[i].Key()] = true
	}
	for _, p := range distinct(found) {
		if p.Answer.Outcome == fleet.NotAsked {
			continue
		}
		v.asked++
		v.sample[p.Key()] = p.Answer
		if p.Answer.State != nil {
			v.answered++
		}
	}
	return v, nil
}

func (v *view) covers(namespace, name string) bool { return v.policies[namespace+"/"+name] }

// says is the line above the table.
func (v *view) says(interval time.Duration) string {
	return fmt.Sprintf("%d policies, %d of %d sidecars answer, every %s; Ctrl-C ends", len(v.policies), v.answered, v.asked, interval)
}
