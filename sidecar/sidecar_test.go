package sidecar_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
	})
}

func TestALimitAdmitsItsBurstAndDeniesTheRest(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("all", 1, 3)}, fill: true})
	c := client(t)
	for i := range 3 {
		if r, body := get(t, c, p.url("/hello?a=b")); r.StatusCode != http.StatusOK || body != "GET /hello?a=b" {
			t.Fatalf("request %d: %d %q, want it forwarded", i, r.StatusCode, body)
		}
	}
	r, body := get(t, c, p.url("/hello"))
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "3600" {
		t.Errorf("got %d with Retry-After %q, want 429 and 3600", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, `"violated-policies":["checkout/all"]`) {
		t.Errorf("body does not name the limit: %s", body)
	}
	s := p.state()
	if !s.Ready || !s.Quota.Connected || s.Quota.Epoch != 1 || s.SnapshotVersion != "v1" {
		t.Errorf("state is %+v", s)
	}
	if l := s.Policies[0].Limits[0]; l.Allowed != 3 || l.Denied != 1 || l.ShareFraction != 1 {
		t.Errorf("limit's state is %+v", l)
	}
}
