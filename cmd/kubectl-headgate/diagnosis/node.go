// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nodes finds those that are not ready and carry pods of policies.
func (d *diagnosis) nodes() {
	carries := map[string]int{}
	for _, p := range d.pods() {
		carries[p.Spec.NodeName]++
	}
	ready := 0
	for i := range d.Nodes {
		n := &d.Nodes[i]
		since, well := readiness(n)
		if well {
			ready++
			continue
		}
		d.sick[n.Name] = true
		if carries[n.Name] == 0 {
			continue
		}
		for _, p := range d.pods() {
			if p.Spec.NodeName == n.Name {
				d.explain(p)
			}
		}
		d.problem(Finding{Code: NodeNotReady, What: fmt.Sprintf("node %s has not been ready for %s", n.Name, d.ago(since)), Where: []string{"node/" + n.Name},
			Why: fmt.Sprintf("its %s may still run, so their shares stay reserved for them until somebody who can know says that they have ended", plural(carries[n.Name], "pod")),
			Do:  "bring it back; or, if you know that it is off, say so",
			Commands: []string{
				"kubectl describe node " + n.Name,
				fmt.Sprintf("kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", n.Name),
			}})
	}
	if ready > 0 && !d.Has(NodeNotReady) {
		d.well("nodes", plural(ready, "node")+" ready")
	}
}

func readiness(n *corev1.Node) (since time.Time, ready bool) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return n.CreationTimestamp.Time, false
}
