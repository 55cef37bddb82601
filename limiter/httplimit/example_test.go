// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/limiter/httplimit"
)

func Example() {
	perKey, err := limiter.NewKeyed(limiter.PerMinute(60), 2*limiter.Token, 1_000_000)
	if err != nil {
		panic(err)
	}
	limit := httplimit.Middleware{
		Name:   "per-key",
		Window: limiter.PerMinute(60).Duration(2 * limiter.Token),
		Decide: httplimit.ByKey(perKey, func(r *http.Request) string { return r.Header.Get("X-Api-Key") }),
	}
	handler := limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	}))

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "per-key";r=1
	// 200 "per-key";r=0
	// 429 "per-key";r=0;t=1
}
