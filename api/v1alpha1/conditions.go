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
	ReasonAccepted       Reason = "Accepted"
	ReasonInvalid        Reason = "Invalid"
	ReasonTargetNotFound Reason = "TargetNotFound"
	ReasonConflicted     Reason = "Conflicted"
)

// Reasons of Injected.
const (
	ReasonInjected           Reason = "Injected"
	ReasonPodsWithoutSidecar Reason = "PodsWithoutSidecar"
	ReasonBypassable         Reason = "Bypassable"
	ReasonNotInjectable      Reason = "NotInjectable"
	ReasonNoPods             Reason = "NoPods"
	// ReasonSidecarOutdated is a reason of Injected=True: all pods are limited, some by another sidecar than they would get now.
	ReasonSidecarOutdated Reason = "SidecarOutdated"
)

// Reasons of Programmed.
const (
	ReasonProgrammed  Reason = "Programmed"
	ReasonReconciling Reason = "Reconciling"
)

// Reasons of QuotaHealthy.
const (
	ReasonHealthy  Reason = "Healthy"
	ReasonDegraded Reason = "Degraded"
	ReasonReserved Reason = "Reserved"
)

// EventReason is a reason of an event on a policy or a workload.
type EventReason string

// Reasons of events.
const (
	EventAccepted        EventReason = "Accepted"
	EventInvalid         EventReason = "Invalid"
	EventTargetNotFound  EventReason = "TargetNotFound"
	EventConflicted      EventReason = "Conflicted"
	EventProgrammed      EventReason = "Programmed"
	EventRolloutStarted  EventReason = "RolloutStarted"
	EventRolloutManual   EventReason = "RolloutLeftToYou"
	EventRolloutReverted EventReason = "RolloutReverted"
	EventReserved        EventReason = "ShareReserved"
	EventReleased        EventReason = "ShareReleased"
	EventNotReleased     EventReason = "ShareNotReleased"
	EventNotInjected     EventReason = "SidecarNotInjected"
)

// EventAction is the action of an event.
type EventAction string

// Actions of events.
const (
	ActionReconcile EventAction = "Reconcile"
	ActionInject    EventAction = "Inject"
	ActionRestart   EventAction = "Restart"
	ActionRelease   EventAction = "Release"
)
