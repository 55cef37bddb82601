// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// operator answers as told, on one port, for all three.
type operator struct {
	answer  string
	metrics int
	// stranger shows a certificate that nobody was told to trust.
	stranger bool
}

func (o operator) serve(t *testing.T) []string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.WriteHeader(o.metrics)
			return
		}
		_, _ = io.WriteString(w, o.answer)
	}))
	server.TLS = &tls.Config{}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	authority := server.Certificate().Raw
	if o.stranger {
		// The certificate of httptest is always the same: a spoilt one is another.
		authority = append([]byte(nil), authority...)
		authority[len(authority)-1] ^= 1
	}
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--host=127.0.0.1", "--ca-file=" + ca, "--webhook-port=" + u.Port(), "--quota-port=" + u.Port(), "--metrics-port=" + u.Port(), "--timeout=5s"}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	allowed := `{"response":{"allowed":true}}`
	for name, tc := range map[string]struct {
		operator operator
		want     []string
	}{
		// httptest's certificate does not have the name of the quota service: that it is refused is asked here, too.
		"all is well but for the quota service's name": {operator{allowed, http.StatusUnauthorized, false}, []string{"quota"}},
		"a pod is refused":                 {operator{`{"response":{"allowed":false}}`, http.StatusUnauthorized, false}, []string{"webhook", "quota"}},
		"a pod is changed":                 {operator{`{"response":{"allowed":true,"patch":"e30="}}`, http.StatusUnauthorized, false}, []string{"webhook", "quota"}},
		"the answer is none":               {operator{`hello`, http.StatusUnauthorized, false}, []string{"webhook", "quota"}},
		"metrics are for everybody":        {operator{allowed, http.StatusOK, false}, []string{"quota", "metrics"}},
		"a certificate that nobody trusts": {operator{allowed, http.StatusUnauthorized, true}, []string{"webhook", "quota", "metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := Run(t.Context(), tc.operator.serve(t), &out)
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			for _, part := range []string{"webhook", "quota", "metrics"} {
				wrong := false
				for _, w := range tc.want {
					wrong = wrong || w == part
				}
				if got := strings.Contains(err.Error(), "not so: the "+part); got != wrong {
					t.Errorf("%s is said to be wrong: %t\n%v", part, got, err)
				}
				if got := strings.Contains(out.String(), "ok: the "+part); got == wrong {
					t.Errorf("%s is said to be well: %t\n%s", part, got, out.String())
				}
			}
		})
	}
}
