// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestEveryAnswerIsCountedAndKept(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") == "limited" {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if n.Add(1)%5 == 0 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintln(w, "pod-1")
	}))
	defer server.Close()
	r, err := Start(t.Context(), server.URL,
		Client{Key: "limited", Rate: 100, Connections: Pinned},
		Client{Rate: 100, Connections: Renewed},
		Client{Rate: 100, Connections: New})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); r.Count().Offered < 100 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	answers := r.Stop()
	c := r.Count()
	if c.Offered != int64(len(answers)) || c.Offered != c.Admitted+c.Denied+c.Failed || c.Admitted == 0 || c.Denied == 0 || c.Failed == 0 {
		t.Errorf("counts %+v of %d answers", c, len(answers))
	}
	for i := range answers {
		a := &answers[i]
		if a.Denied() && (a.RetryAfter != 7 || a.Pod != "") || a.Admitted() && (a.RetryAfter != -1 || a.Pod != "pod-1") {
			t.Fatalf("answer %+v", a)
		}
	}
	if lost, excused := Failures(answers); int64(len(lost)) != c.Failed || len(excused) != 0 {
		t.Errorf("%d lost, %d excused of %d failures", len(lost), len(excused), c.Failed)
	}
}

func TestOnlyACrashExcusesAFailure(t *testing.T) {
	at := time.Now()
	crash := Crash{Pod: "dead", At: at}
	answer := func(pod string, start, end time.Duration) Answer {
		return Answer{Pod: pod, Start: at.Add(start), End: at.Add(end), Err: errors.New("broken pipe")}
	}
	for name, tc := range map[string]struct {
		answer  Answer
		excused bool
	}{
		"in flight on the dead pod":                    {answer("dead", -time.Second, time.Second), true},
		"over a kept connection to the dead pod":       {answer("dead", 20*time.Second, 21*time.Second), true},
		"before the crash":                             {answer("dead", -2*time.Second, -time.Second), false},
		"on another pod":                               {answer("alive", 0, time.Millisecond), false},
		"on a new connection just after the crash":     {answer("", time.Second, 4*time.Second), true},
		"on a new connection begun before the crash":   {answer("", -time.Millisecond, time.Millisecond), true},
		"on a new connection that came and went first": {answer("", -2*time.Second, -time.Second), false},
		"on a new connection later":                    {answer("", Blind, Blind+time.Second), false},
		"an error of a proxy on another pod":           {Answer{Pod: "alive", Status: 502, Start: at, End: at.Add(time.Second)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lost, excused := Failures([]Answer{tc.answer}, crash)
			if len(lost)+len(excused) != 1 || len(excused) == 1 != tc.excused {
				t.Errorf("lost %v, excused %v", lost, excused)
			}
		})
	}
}

func TestOnlyPrivateAddressesGetLoad(t *testing.T) {
	for _, target := range []string{"http://8.8.8.8", "http://localhost", "http://example.com", "://"} {
		if r, err := Start(t.Context(), target); err == nil {
			r.Stop()
			t.Errorf("%s was accepted", target)
		}
	}
	if r, err := Start(t.Context(), "http://10.96.0.1", Client{Rate: MostPerSecond + 1}); err == nil {
		r.Stop()
		t.Error("an unbounded load was accepted")
	}
}

func TestDroughtFindsTheLongestGap(t *testing.T) {
	at := time.Now()
	var answers []Answer
	for _, ms := range []int{0, 100, 900, 300, 1000} { // not in order
		answers = append(answers, Answer{Status: 200, End: at.Add(time.Duration(ms) * time.Millisecond)})
	}
	answers = append(answers, Answer{Status: 429, End: at.Add(500 * time.Millisecond)})
	longest, from := Drought(answers)
	if longest != 600*time.Millisecond || !from.Equal(at.Add(300*time.Millisecond)) {
		t.Errorf("%s from %s", longest, from.Sub(at))
	}
}
