// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/controllers/target"
)

// wants compares one family of the home's metrics with its lines, "" for none.
func (b *bench) wants(t *testing.T, family string, lines ...string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.Home)
	want := ""
	if len(lines) > 0 {
		ch := make(chan *prometheus.Desc, 64)
		b.Describe(ch)
		close(ch)
		for d := range ch {
			if _, rest, ok := strings.Cut(d.String(), fmt.Sprintf(`fqName: %q, help: `, family)); ok {
				help, _, _ := strings.Cut(rest, ", constLabels")
				var text string
				if _, err := fmt.Sscanf(help, "%q", &text); err != nil {
					t.Fatal(err)
				}
				want = "# HELP " + family + " " + text + "\n# TYPE " + family + " gauge\n" + strings.Join(lines, "\n") + "\n"
			}
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), family); err != nil {
		t.Error(err)
	}
}

// beat lets every connected pod report, each second for some time, that it is asked for so many requests per second.
func (b *bench) beat(seconds int, perSecond map[string]int, counts map[string]uint64) {
	for range seconds {
		b.now += int64(time.Second)
		for name, s := range b.pods {
			counts[name] += uint64(perSecond[name])
			b.report(types.UID(name), s, &quotav1.Usage{Limits: []*quotav1.LimitUsage{{LimitId: "uid/all", Offered: new(counts[name])}}})
		}
	}
}

const offeredOf = `headgate_offered_requests_per_second{limit="all",namespace="shop",policy="checkout",workload="checkout",workload_kind="Deployment"} `

func TestOfferedDemandIsWhatAnAutoscalerNeeds(t *testing.T) {
	led := func(t *testing.T) (*bench, map[string]uint64) {
		b := newBench(t)
		b.publish(true, limit("all"))
		b.Lead(1, Handover{})
		for _, name := range []string{"a", "b"} {
			b.observe(name)
			b.connect(name, "1", 0)
		}
		b.settle()
		return b, map[string]uint64{}
	}
	for name, test := range map[string]func(*testing.T, *bench, map[string]uint64){
		"it is the sum over the pods": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"42")
		},
		"a new leader says nothing until its pods are back, so that nobody scales down": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(9, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second")
			b.beat(1, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"42")
		},
		"it follows within the window": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30}, counts)
			b.beat(9, map[string]int{"a": 90}, counts)
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(b.Home)
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() != "headgate_offered_requests_per_second" {
					continue
				}
				if v := f.Metric[0].GetGauge().GetValue(); v <= 50 || v >= 80 {
					t.Errorf("%v after 9 of 15 seconds at 90 per second instead of 30", v)
				}
			}
			b.beat(9, map[string]int{"a": 90}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"90")
		},
		"it is 0 after the last pod has gone": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30, "b": 12}, counts)
			for _, name := range []string{"a", "b"} {
				b.drained(types.UID(name), b.pods[name], nil)
				delete(b.pods, name)
			}
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"0")
		},
		"a pod that has fallen silent counts no more": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30, "b": 12}, counts)
			delete(b.pods, "a")
			b.beat(5, map[string]int{"b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"12")
		},
		"a stream that breaks for a moment leaves no dent": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30, "b": 12}, counts)
			b.connect("a", "1", 0)
			b.beat(1, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"42")
		},
		"a sidecar that starts again counts from nothing, and never below": func(t *testing.T, b *bench, counts map[string]uint64) {
			b.beat(20, map[string]int{"a": 30, "b": 12}, counts)
			counts["a"] = 0
			b.beat(1, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"12")
			b.beat(1, map[string]int{"a": 30, "b": 12}, counts)
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"42")
		},
		"an older sidecar's demand is what it admitted and denied": func(t *testing.T, b *bench, _ map[string]uint64) {
			delete(b.pods, "b")
			for i := range uint64(20) {
				b.now += int64(time.Second)
				b.report("a", b.pods["a"], &quotav1.Usage{Limits: []*quotav1.LimitUsage{{LimitId: "uid/all", Admitted: 5 * i, Denied: 2 * i}}})
			}
			b.wants(t, "headgate_offered_requests_per_second", offeredOf+"7")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, counts := led(t)
			test(t, b, counts)
		})
	}
}

func TestDemandIsToldApartByWorkload(t *testing.T) {
	b := newBench(t)
	basket := target.Workload{Kind: "StatefulSet", Namespace: "shop", Name: "basket"}
	b.Publish(&quotav1.Policy{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 1, Limits: []*quotav1.Limit{limit("all")}},
		[]target.Workload{checkout, basket}, true)
	b.Lead(1, Handover{})
	b.observe("a")
	b.observe("b", func(s *PodState) { s.Owners = []target.Workload{basket} })
	for _, name := range []string{"a", "b"} {
		b.connect(name, "1", 0)
	}
	b.settle()
	b.beat(20, map[string]int{"a": 30, "b": 12}, map[string]uint64{})
	b.wants(t, "headgate_offered_requests_per_second", offeredOf+"30",
		`headgate_offered_requests_per_second{limit="all",namespace="shop",policy="checkout",workload="basket",workload_kind="StatefulSet"} 12`)
}

func TestMetricsOfAPolicyAreTheLeadersAlone(t *testing.T) {
	gold := limit("all")
	gold.Id, gold.Variant = "uid/all/gold", &quotav1.Variant{BaseId: "uid/all", Name: "gold"}
	flight := limit("flight")
	flight.Algorithm = quotav1.Algorithm_CONCURRENCY
	keyed := limit("keyed")
	keyed.Key, keyed.Strategy = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Header{Header: "x"}}}, quotav1.Strategy_ADAPTIVE
	b := newBench(t)
	b.publish(true, limit("all"), gold, flight, keyed)
	b.wants(t, "headgate_leading", "headgate_leading 0")
	b.wants(t, "headgate_pods")
	b.Lead(1, Handover{})
	b.observe("a")
	b.connect("a", "1", 0)
	b.settle()
	b.wants(t, "headgate_leading", "headgate_leading 1")
	// A tier has the name of its limit: it must not hide it, nor break the scrape.
	b.wants(t, "headgate_pods",
		`headgate_pods{limit="all",namespace="shop",policy="checkout"} 1`,
		`headgate_pods{limit="all/gold",namespace="shop",policy="checkout"} 1`,
		`headgate_pods{limit="flight",namespace="shop",policy="checkout"} 1`,
		`headgate_pods{limit="keyed",namespace="shop",policy="checkout"} 0`)
	b.wants(t, "headgate_limit_tokens_per_second",
		`headgate_limit_tokens_per_second{limit="all",namespace="shop",per="limit",policy="checkout"} 100`,
		`headgate_limit_tokens_per_second{limit="all/gold",namespace="shop",per="limit",policy="checkout"} 100`,
		`headgate_limit_tokens_per_second{limit="keyed",namespace="shop",per="key",policy="checkout"} 100`)
	b.wants(t, "headgate_limit_burst_tokens",
		`headgate_limit_burst_tokens{limit="all",namespace="shop",policy="checkout"} 100`,
		`headgate_limit_burst_tokens{limit="all/gold",namespace="shop",policy="checkout"} 100`,
		`headgate_limit_burst_tokens{limit="flight",namespace="shop",policy="checkout"} 100`,
		`headgate_limit_burst_tokens{limit="keyed",namespace="shop",policy="checkout"} 100`)
	b.wants(t, "headgate_reserved_pods", `headgate_reserved_pods{namespace="shop",policy="checkout"} 0`)
	b.detach("a", b.pods["a"])
	b.wants(t, "headgate_reserved_pods", `headgate_reserved_pods{namespace="shop",policy="checkout"} 1`)
	b.valid = false // the lease may have passed on
	b.wants(t, "headgate_leading", "headgate_leading 0")
	b.wants(t, "headgate_pods")
}
