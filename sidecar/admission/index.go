// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"iter"
	"slices"
	"strings"
)

// index finds the limits that may apply to a request without asking each of them. It holds every match under the one part
// that says most of it; what has no such part is asked always. It never misses a limit that applies, and what it finds is
// still to be asked. Immutable.
type index struct {
	always  []int
	exact   map[string][]int            // whole paths
	prefix  map[string][]int            // paths that begin with these segments
	hosts   map[string][]int            // exact names
	headers map[string]map[string][]int // exact values of canonical names
	few     bool                        // asking all of them costs less than looking them up
}

// fewLimits is how many limits are asked in less time than the index takes.
const fewLimits = 16

func buildIndex(limits []*Limit) *index {
	x := &index{
		exact: map[string][]int{}, prefix: map[string][]int{}, hosts: map[string][]int{},
		headers: map[string]map[string][]int{}, few: len(limits) <= fewLimits,
	}
	for i, l := range limits {
		if len(l.matches) == 0 {
			x.always = append(x.always, i)
		}
		for j := range l.matches {
			x.add(i, &l.matches[j])
		}
	}
	return x
}

func (x *index) add(i int, m *matcher) {
	if m.path != nil && m.path.pattern == nil {
		if paths, where := m.path.keys(), x.prefix; len(paths) > 0 {
			if m.path.template == nil && !m.path.prefix {
				where = x.exact
			}
			for _, p := range paths {
				where[p] = append(where[p], i)
			}
			return
		}
	}
	for _, h := range m.headers {
		if h.value.isExact() && h.name != hostHeader {
			if x.headers[h.name] == nil {
				x.headers[h.name] = map[string][]int{}
			}
			x.headers[h.name][h.value.exact] = append(x.headers[h.name][h.value.exact], i)
			return
		}
	}
	if len(m.hosts) > 0 && !slices.ContainsFunc(m.hosts, func(h string) bool { return h[0] == '.' }) {
		for _, h := range m.hosts {
			x.hosts[h] = append(x.hosts[h], i)
		}
		return
	}
	x.always = append(x.always, i)
}

// keys are the paths under which a match stands: a reading that matches is one of them, or begins with one. None when the
// match can be found by no path.
func (m *pathMatcher) keys() []string {
	if m.template == nil {
		out := []string{m.want.sent, m.want.strict, m.want.loose}
		slices.Sort(out)
		out = slices.Compact(out)
		if out[0] == "" { // the prefix "/"
			return nil
		}
		return out
	}
	var b strings.Builder
	for _, s := range m.template {
		if s.variable != "" || s.literal == "" {
			break
		}
		b.WriteString("/" + s.literal)
	}
	if b.Len() == 0 {
		return nil
	}
	return []string{b.String()}
}

// find appends the numbers of the limits that may apply, in order.
func (x *index) find(r *reading, limits int, out []int) []int {
	if x.few {
		for i := range limits {
			out = append(out, i)
		}
		return out
	}
	out = append(out, x.always...)
	for path := range r.paths.distinct() {
		if len(x.exact) > 0 {
			out = append(out, x.exact[path]...)
		}
		if len(x.prefix) > 0 {
			for end := range prefixes(path) {
				out = append(out, x.prefix[path[:end]]...)
			}
		}
	}
	if len(x.hosts) > 0 {
		out = append(out, x.hosts[r.host()]...)
	}
	for name, values := range x.headers {
		lines, _ := r.lines(name)
		for _, line := range lines {
			out = append(out, values[line]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// prefixes yields where a path's leading segments end.
func prefixes(path string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 1; i < len(path); i++ {
			if path[i] == '/' && !yield(i) {
				return
			}
		}
		if len(path) > 1 && path[len(path)-1] != '/' {
			yield(len(path))
		}
	}
}

// distinct yields the different readings of a path.
func (p *paths) distinct() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(p.sent) || p.strict != p.sent && !yield(p.strict) {
			return
		}
		if p.loose != p.sent && p.loose != p.strict {
			yield(p.loose)
		}
	}
}
