// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"time"
)

// Bounds of what clocks may be off. The API server tells its time in whole seconds.
const (
	clockNoise = 3 * time.Second
	clockFar   = 30 * time.Second
)

// clocks compares clocks with the API server's. Limits are kept by how fast a clock goes, so one that is set wrong breaks no
// limit: it breaks certificates and tokens.
func (d *diagnosis) clocks() {
	var off []string
	far := false
	note := func(where string, ahead time.Duration) {
		if ahead.Abs() < clockNoise {
			return
		}
		word := "ahead"
		if ahead < 0 {
			word = "behind"
		}
		off = append(off, fmt.Sprintf("%s: %s %s", where, short(ahead), word))
		far = far || ahead.Abs() >= clockFar
	}
	compared := 0
	nodes := map[string]bool{}
	for _, p := range d.pods() {
		if s := p.Answer.State; s != nil && !s.Time.IsZero() && !nodes[p.Spec.NodeName] {
			compared++
			nodes[p.Spec.NodeName] = true
			note(fmt.Sprintf("node %s (pod %s -n %s)", p.Spec.NodeName, p.Name, p.Namespace), s.Time.Sub(p.Answer.At)+d.Here)
		}
	}
	if d.Lease.Renewed {
		compared++
		note("the operator that leads", d.Lease.Ahead)
	}
	note("this machine", d.Here)
	if len(off) == 0 {
		if compared > 0 {
			d.well("clocks", fmt.Sprintf("%s within %s of the API server's", plural(compared, "clock"), short(clockNoise)))
		}
		return
	}
	f := Finding{Code: ClockOff, What: "clocks differ from the API server's", Where: off,
		Why: "certificates and tokens seem to begin late or to end early; limits are kept all the same",
		Do:  "let the nodes keep time by NTP", Commands: []string{"timedatectl status"}}
	if far {
		d.problem(f)
	} else {
		d.notice(f)
	}
}
