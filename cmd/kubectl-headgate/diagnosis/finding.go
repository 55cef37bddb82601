// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

// Level says whether something is wrong.
type Level string

// Levels.
const (
	Problem Level = "Problem" // limits are not kept as declared, or soon will not be
	Notice  Level = "Notice"  // worth knowing
)

// Code names a cause, for programs.
type Code string

// Codes.
const (
	OperatorMissing      Code = "OperatorMissing"
	OperatorScaledToZero Code = "OperatorScaledToZero"
	OperatorNotReady     Code = "OperatorNotReady"
	OperatorAlone        Code = "OperatorAlone"
	NobodyLeads          Code = "NobodyLeads"

	WebhookMissing     Code = "WebhookMissing"
	WebhookNotCalled   Code = "WebhookNotCalled"
	WebhookNoEndpoints Code = "WebhookNoEndpoints"
	WebhookUnreachable Code = "WebhookUnreachable"
	PodsRefused        Code = "PodsRefused"

	CertificateExpired    Code = "CertificateExpired"
	CertificateMismatch   Code = "CertificateMismatch"
	CertificateNotRenewed Code = "CertificateNotRenewed"
	AuthorityMissing      Code = "AuthorityMissing"

	TargetMissing     Code = "TargetMissing"
	PodWithoutSidecar Code = "PodWithoutSidecar"
	PodLeftAlone      Code = "PodLeftAlone"
	PolicyUnhealthy   Code = "PolicyUnhealthy"

	SidecarFrozen      Code = "SidecarFrozen"
	SidecarNotRunning  Code = "SidecarNotRunning"
	SidecarUnreachable Code = "SidecarUnreachable"
	SidecarOutdated    Code = "SidecarOutdated"
	StreamBlocked      Code = "StreamBlocked"
	StreamRefused      Code = "StreamRefused"

	NodeNotReady Code = "NodeNotReady"
	ClockOff     Code = "ClockOff"
	VersionsFar  Code = "VersionsFar"
	NotLookedAt  Code = "NotLookedAt"
)

// Finding is one cause.
type Finding struct {
	Level Level `json:"level"`
	Code  Code  `json:"code"`
	// What is wrong, Where, and Why it matters.
	What  string   `json:"what"`
	Where []string `json:"where,omitempty"`
	Why   string   `json:"why"`
	// Do is what to do, Commands are what to paste.
	Do       string   `json:"do"`
	Commands []string `json:"commands,omitempty"`
}

// Check is one thing that was looked at and is as it should be.
type Check struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// Report is what doctor says.
type Report struct {
	// Wrong says that at least one finding is a problem.
	Wrong    bool      `json:"wrong"`
	Findings []Finding `json:"findings"`
	Well     []Check   `json:"well"`
}

// Has reports whether a cause was found.
func (r *Report) Has(code Code) bool {
	for i := range r.Findings {
		if r.Findings[i].Code == code {
			return true
		}
	}
	return false
}

func (r *Report) problem(f Finding) {
	f.Level, r.Wrong = Problem, true
	r.Findings = append(r.Findings, f)
}

func (r *Report) notice(f Finding) {
	f.Level = Notice
	r.Findings = append(r.Findings, f)
}

func (r *Report) well(name, says string) {
	r.Well = append(r.Well, Check{name, says})
}
