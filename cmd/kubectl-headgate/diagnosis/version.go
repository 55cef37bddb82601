// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/injector"
)

// versions compares the operator, the sidecars and the plugin. One minor version apart works together.
func (d *diagnosis) versions() {
	operator := tag(d.operatorImage())
	var outdated, far []string
	images := map[string]int{}
	for _, p := range d.pods() {
		image := injector.Image(&p.Spec)
		if image == "" {
			continue
		}
		images[image]++
		if d.SidecarImage != "" && image != d.SidecarImage && !d.chosen(image) {
			outdated = append(outdated, fmt.Sprintf("pod/%s -n %s: %s", p.Name, p.Namespace, image))
		}
		if apart(operator, tag(image)) {
			far = append(far, fmt.Sprintf("pod/%s -n %s: %s", p.Name, p.Namespace, tag(image)))
		}
	}
	if apart(operator, d.Version) {
		far = append(far, "this plugin: "+d.Version)
	}
	if len(outdated) > 0 {
		d.notice(Finding{Code: SidecarOutdated, What: plural(len(outdated), "pod") + " with another sidecar than new ones get", Where: outdated,
			Why: "they are limited all the same; the operator speaks with sidecars of one minor version before it, and after",
			Do:  "restart their workloads when it suits you; new pods get " + d.SidecarImage})
	}
	if len(far) > 0 {
		d.problem(Finding{Code: VersionsFar, What: "more than one minor version away from the operator, which is " + operator, Where: far,
			Why: "that was not tested together", Do: "upgrade one minor version at a time, and restart the workloads between"})
	}
	if len(outdated)+len(far) == 0 && operator != "" {
		says := "operator " + operator
		if len(images) > 0 {
			says += ", sidecars " + strings.Join(tags(images), " and ")
		}
		d.well("versions", says)
	}
}

// chosen reports whether a policy asks for an image of its own.
func (d *diagnosis) chosen(image string) bool {
	return slices.ContainsFunc(d.Policies, func(p fleet.Policy) bool { return p.Spec.Injection.Sidecar.Image == image })
}

func (d *diagnosis) operatorImage() string {
	if d.Operator.Deployment == nil || len(d.Operator.Deployment.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return d.Operator.Deployment.Spec.Template.Spec.Containers[0].Image
}

// tag is what follows the name of an image.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[i+1:]
	}
	return ""
}

func tags(images map[string]int) []string {
	var out []string
	for _, image := range slices.Sorted(maps.Keys(images)) {
		out = append(out, tag(image))
	}
	return slices.Compact(out)
}

// apart reports whether two versions are more than one minor version apart. What is no version is not.
func apart(a, b string) bool {
	x, err1 := version.ParseSemantic(a)
	y, err2 := version.ParseSemantic(b)
	if err1 != nil || err2 != nil {
		return false
	}
	return x.Major() != y.Major() || x.Minor() > y.Minor()+1 || y.Minor() > x.Minor()+1
}
