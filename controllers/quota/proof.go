// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import "time"

// process is one run of a sidecar, named by the pod's UID and the name that the process gave itself at its start.
type process struct {
	incarnation string
	started     time.Time // by the node's clock
	bootID      string    // of the node, when the process registered
	demand      demand
}

// proofOfEnd says why a process is known to have ended, or returns "". Absence of the pod's object, its phase while the
// kubelet is cut off, NotReady and silence prove nothing (docs/guarantees.md, 2): such pods have been seen to answer still.
func proofOfEnd(p process, pod *PodState, node NodeState, known bool) string {
	for _, t := range pod.Terminations {
		// The kubelet cuts times to seconds: a process that started at 10.4 s and a predecessor that ended at 10.1 s
		// differ only when the end, cut, lies after the start.
		if t.Finished.After(p.started) {
			return "the kubelet reports the sidecar as terminated"
		}
	}
	switch {
	case !known:
		return ""
	case node.Deleted:
		return "node " + node.Name + " was deleted"
	case node.OutOfService:
		return "node " + node.Name + " carries the out-of-service taint"
	case p.bootID != "" && node.BootID != "" && node.BootID != p.bootID:
		return "node " + node.Name + " has restarted"
	}
	return ""
}

// mayRun reports whether a sidecar process that nobody has heard of may run in the pod: what a new leader must assume.
func mayRun(pod *PodState, node NodeState, known bool) bool {
	switch {
	case !pod.Injected || !pod.Scheduled || pod.Ended:
		return false
	case pod.SidecarEnded && (pod.Terminating || pod.Deleted): // the kubelet starts nothing again in such a pod
		return false
	case known && (node.Deleted || node.OutOfService):
		return false
	case known && pod.BootID != "" && node.BootID != "" && node.BootID != pod.BootID:
		return false
	}
	return true
}

// awaits says what proof would free the share of a pod that cannot be reached. It is what proofOfEnd looks for.
func awaits(pod *PodState, node NodeState, known bool) string {
	const or = "for its Node to be deleted, restarted or tainted node.kubernetes.io/out-of-service"
	switch {
	case !known:
		return "waiting for news of node " + pod.Node
	case !node.Ready:
		return "node " + node.Name + " is not ready: waiting for its kubelet to come back and report the sidecar's end, or " + or
	case pod.Deleted:
		return "its object was deleted before its end on node " + node.Name + " was reported: waiting for a last word of its sidecar, or " + or
	case pod.Terminating:
		return "waiting for the kubelet of node " + node.Name + " to report the sidecar's end"
	}
	return "its sidecar on node " + node.Name + " does not speak: waiting for it to speak again, or for the kubelet to report its end"
}
