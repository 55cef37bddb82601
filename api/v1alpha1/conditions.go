// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionType is a type of a RateLimitPolicy's conditions (GEP-713, and two of our own).
type ConditionType string

// Conditions of a RateLimitPolicy.
const (
	// ConditionAccepted says whether the policy is understood and its targets are there.
	ConditionAccepted ConditionType = "Accepted"
	// ConditionInjected says whether every pod of the targets carries the sidecar and cannot be reached around it.
	ConditionInjected ConditionType = "Injected"
	// ConditionProgrammed says whether every pod has acknowledged this generation of the policy.
	ConditionProgrammed ConditionType = "Programmed"
	// ConditionQuotaHealthy says whether all capacity is where it should be.
	ConditionQuotaHealthy ConditionType = "QuotaHealthy"
)

// Reason is a reason of a condition.
type Reason string

// Reasons of Accepted.
const (
	// ReasonAccepted: the policy is understood, and its targets are there.
	ReasonAccepted Reason = "Accepted"
	// ReasonInvalid: the policy says what cannot be enforced. What was enforced before stays; the message has the field and an example.
	ReasonInvalid Reason = "Invalid"
	// ReasonTargetNotFound: a target is not there. It is limited from its first request once it is.
	ReasonTargetNotFound Reason = "TargetNotFound"
	// ReasonConflicted, with Accepted=True: an older policy on the same workload asks for another injection, and has it.
	ReasonConflicted Reason = "Conflicted"
)

// Reasons of Injected.
const (
	// ReasonInjected: every pod carries the sidecar.
	ReasonInjected Reason = "Injected"
	// ReasonPodsWithoutSidecar: pods are not limited until they are replaced; the message says how.
	ReasonPodsWithoutSidecar Reason = "PodsWithoutSidecar"
	// ReasonBypassable: requests reach the app around the sidecar, or cannot reach the sidecar; the message has the edit.
	ReasonBypassable Reason = "Bypassable"
	// ReasonNotInjectable: the cluster does not allow the sidecar in these pods; the message has every remedy.
	ReasonNotInjectable Reason = "NotInjectable"
	// ReasonNoPods: there are no pods yet.
	ReasonNoPods Reason = "NoPods"
	// ReasonSidecarOutdated, with Injected=True: all pods are limited, some by another sidecar than they would get now.
	ReasonSidecarOutdated Reason = "SidecarOutdated"
)

// Reasons of Programmed.
const (
	// ReasonProgrammed: every pod has acknowledged this generation.
	ReasonProgrammed Reason = "Programmed"
	// ReasonReconciling: pods have not acknowledged this generation yet; the message names them.
	ReasonReconciling Reason = "Reconciling"
)

// Reasons of QuotaHealthy.
const (
	// ReasonHealthy: every pod has its part.
	ReasonHealthy Reason = "Healthy"
	// ReasonDegraded: the burst is smaller than the number of pods, and the limit is shared equally: it admits nothing.
	ReasonDegraded Reason = "Degraded"
	// ReasonReserved: a pod that may still run cannot be reached, and keeps its part; the message says what is waited for.
	ReasonReserved Reason = "Reserved"
)

// EventReason is a reason of an event on a policy or a workload.
type EventReason string

// Reasons of events.
const (
	// EventAccepted: a policy that was not accepted is.
	EventAccepted EventReason = "Accepted"
	// EventInvalid: a policy says what cannot be enforced.
	EventInvalid EventReason = "Invalid"
	// EventTargetNotFound: a policy names a workload that is not there.
	EventTargetNotFound EventReason = "TargetNotFound"
	// EventConflicted: an older policy on the same workload asks for another injection.
	EventConflicted EventReason = "Conflicted"
	// EventProgrammed: every pod has acknowledged a generation.
	EventProgrammed EventReason = "Programmed"
	// EventRolloutStarted: a workload is restarted so that its pods get the sidecar, or lose it.
	EventRolloutStarted EventReason = "RolloutStarted"
	// EventRolloutManual: a workload needs a restart that is left to you.
	EventRolloutManual EventReason = "RolloutLeftToYou"
	// EventRolloutReverted: a restart made no pods, since the cluster refused them, and was taken back.
	EventRolloutReverted EventReason = "RolloutReverted"
	// EventReserved: the part of a pod that cannot be reached is kept for it.
	EventReserved EventReason = "ShareReserved"
	// EventReleased: a person has said that a pod has ended, and its part is free.
	EventReleased EventReason = "ShareReleased"
	// EventNotReleased: a person has said that a pod has ended, and it speaks still, or nobody knows it.
	EventNotReleased EventReason = "ShareNotReleased"
	// EventNotInjected: a pod could not get the sidecar.
	EventNotInjected EventReason = "SidecarNotInjected"
)

// EventAction is the action of an event.
type EventAction string

// Actions of events.
const (
	// ActionReconcile: a policy was looked at.
	ActionReconcile EventAction = "Reconcile"
	// ActionInject: a pod was, or was not, given the sidecar.
	ActionInject EventAction = "Inject"
	// ActionRestart: a workload was restarted.
	ActionRestart EventAction = "Restart"
	// ActionRelease: a reserved part was asked to be freed.
	ActionRelease EventAction = "Release"
)
