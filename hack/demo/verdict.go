// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/oracle"
	"github.com/headgate/headgate/test/testbed"
)

// judge prints the verdict; the error says what was broken, and how to look.
func (s *stage) judge(ctx context.Context, e *seen) error {
	if e == nil {
		return nil
	}
	fmt.Println()
	return errors.Join(s.judgeLaw(e), s.judgeFailures(e), s.judgePolicy(ctx))
}

// judgeLaw lets the oracle look at what every pod has recorded, the killed one included.
func (s *stage) judgeLaw(e *seen) error {
	limits := map[string]oracle.Limit{}
	if err := testbed.Declare(limits, s.policy); err != nil {
		return err
	}
	if s.records == "" {
		return judgeTotal(limits, e)
	}
	files, err := testbed.Records(s.records, namespace)
	if err != nil {
		return err
	}
	report := oracle.Check(files, limits)
	report.Fprint(os.Stdout)
	if report.Decisions == 0 || len(report.Unknown) > 0 {
		return fmt.Errorf("what the pods have recorded in %s cannot be judged (above)", s.records)
	}
	if !report.Kept() {
		return fmt.Errorf("the law was broken: more was admitted than B + R*W (above); every decision of every pod is in %s", s.records)
	}
	// The verdict is worth nothing when decisions are missing.
	if recorded, admitted := admissions(files, limits), count(e.answers).Admitted; recorded < admitted {
		return fmt.Errorf("clients saw %d requests admitted, but the pods have recorded only %d: records are missing from %s", admitted, recorded, s.records)
	}
	return nil
}

// admissions counts what the limit over the whole service has admitted.
func admissions(files []*record.File, limits map[string]oracle.Limit) (n int64) {
	for _, f := range files {
		for _, d := range f.Decisions {
			if d.Admitted && limits[d.Limit].Name == "whole-service" {
				n++
			}
		}
	}
	return n
}

// judgeTotal is all that can be said where the nodes' disks are out of sight: what clients saw over the whole time.
func judgeTotal(limits map[string]oracle.Limit, e *seen) error {
	for _, l := range limits {
		if l.Name != "whole-service" {
			continue
		}
		seconds := e.end.Sub(e.begin).Seconds()
		most := float64(l.Burst) + float64(l.Requests)/l.Period.Seconds()*1.001*seconds
		admitted := count(e.answers).Admitted
		fmt.Printf("clients: %d admitted in %.1f s, where the law allows %.0f (the nodes' records cannot be read from this machine, so single intervals were not judged)\n",
			admitted, seconds, most)
		if float64(admitted) > most {
			return errors.New("the law was broken: more was admitted than B + R*W")
		}
	}
	return nil
}

func count(answers []load.Answer) (c load.Count) {
	c.Offered = int64(len(answers))
	for i := range answers {
		switch a := &answers[i]; {
		case a.Admitted():
			c.Admitted++
		case a.Denied():
			c.Denied++
		default:
			c.Failed++
		}
	}
	return c
}

// judgeFailures allows only those requests to fail that were in flight on the pod that was deleted by force.
func (s *stage) judgeFailures(e *seen) error {
	c := count(e.answers)
	lost, excused := load.Failures(e.answers, e.crash)
	fmt.Printf("clients: %d offered, %d admitted, %d denied with 429, %d failed\n", c.Offered, c.Admitted, c.Denied, c.Failed)
	if e.crash.Pod != "" {
		fmt.Printf("clients: %d failures were in flight on pod %s, which was deleted by force (on its connections, or on new ones within %s, which may have been led to it)\n",
			len(excused), e.crash.Pod, load.Blind)
	}
	longest, from := load.Drought(e.answers)
	fmt.Printf("clients: the longest time without an admitted request was %s, %.0f s after the start\n", longest.Round(time.Millisecond), from.Sub(e.begin).Seconds())
	e.printPinned()
	if len(lost) == 0 {
		return nil
	}
	for i := range lost[:min(len(lost), 10)] {
		fmt.Printf("clients: LOST: %s\n", &lost[i])
	}
	return fmt.Errorf("%d requests failed that were not in flight on the deleted pod (above); look at: kubectl -n %s get events; kubectl -n %s logs POD -c headgate", len(lost), namespace, namespace)
}

// printPinned says what the client on one connection got in each act.
func (e *seen) printPinned() {
	fmt.Print("clients: the one that keeps a single connection got")
	for i, a := range e.acts {
		n := 0
		for j := range e.answers {
			if x := &e.answers[j]; x.Key == pinned && x.Admitted() && x.End.After(a.begin) && x.End.Before(a.end) {
				n++
			}
		}
		if i > 0 {
			fmt.Print(",")
		}
		fmt.Printf(" %.1f/s with %d pods", float64(n)/a.end.Sub(a.begin).Seconds(), a.pods)
	}
	fmt.Print(" of its 20/s:\n" +
		"         the tokens of a limit are lent to where the requests are.\n")
}

// judgePolicy wants the policy to be enforced by all pods at the end.
func (s *stage) judgePolicy(ctx context.Context) error {
	key := client.ObjectKeyFromObject(s.policy)
	if _, err := s.cluster.WaitEnforced(ctx, 10*time.Second, key, 3); err != nil {
		return fmt.Errorf("%w; look at: kubectl -n %s describe hrlp %s; kubectl -n %s logs deploy/%s", err, namespace, appName, testbed.Namespace, testbed.Operator)
	}
	fmt.Println("policy:  Programmed: all 3 pods have acknowledged it")
	return nil
}
