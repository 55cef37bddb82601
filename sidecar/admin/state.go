// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

// State is the answer of the state path: what is in force in this pod, now.
type State struct {
	Pod         string       `json:"pod"`
	Time        time.Time    `json:"time"` // by the clock of the pod's node
	Version     string       `json:"version"`
	Incarnation string       `json:"incarnation"`
	Ready       bool         `json:"ready"`
	Draining    bool         `json:"draining"`
	Quota       quota.Status `json:"quota"`
	admission.State
}

func (a *Admin) state(w http.ResponseWriter, _ *http.Request) {
	o := a.options
	writeJSON(w, http.StatusOK, State{
		Pod:         o.Pod,
		Time:        time.Now(),
		Version:     o.Version,
		Incarnation: o.Incarnation,
		Ready:       !o.Draining() && o.Engine.Ready() == nil,
		Draining:    o.Draining(),
		Quota:       o.Quota(),
		State:       o.Engine.State(o.Clock()),
	})
}
