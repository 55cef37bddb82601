// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

type schema = apiextensionsv1.JSONSchemaProps

// writer collects the page.
type writer struct {
	strings.Builder
	examples map[string]any
	used     map[string]bool
	seen     map[string]string // where a schema has been described, by its content
	errs     []error
}

func render(crd *apiextensionsv1.CustomResourceDefinition, examples map[string]any) (string, error) {
	w := &writer{examples: examples, used: map[string]bool{}, seen: map[string]string{}}
	version := crd.Spec.Versions[0]
	fmt.Fprintf(w, "# %s, %s/%s\n\n", crd.Spec.Names.Kind, crd.Spec.Group, version.Name)
	fmt.Fprintf(w, "Generated from the types in `api/%s`; do not edit. Whole policies stand in `config/samples`. A rule that a policy breaks is\n"+
		"told at `kubectl apply`, with the path of the field.\n", version.Name)
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	w.object("spec", &spec)
	status := version.Schema.OpenAPIV3Schema.Properties["status"]
	w.object("status", &status)
	for path := range w.examples {
		if !w.used[path] {
			w.errs = append(w.errs, fmt.Errorf("example of %s, which is no field", path))
		}
	}
	return w.String(), errors.Join(w.errs...)
}

// object describes the fields of an object, and then the objects in it.
func (w *writer) object(path string, s *schema) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n", path, s.Description)
	w.seen[content(s)] = path
	w.rules(s)
	example := path == "spec" || strings.HasPrefix(path, "spec.")
	if example {
		w.WriteString("\n| field | type | meaning | example |\n|---|---|---|---|\n")
	} else {
		w.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	type inner struct {
		path string
		s    schema
	}
	var inside []inner
	for _, name := range names {
		field := s.Properties[name]
		at := path + "." + name
		kind, item, suffix := typeOf(&field)
		if len(item.Properties) > 0 {
			where := w.seen[content(item)]
			if where == "" {
				inside = append(inside, inner{at + suffix, *item})
				where = at + suffix
			}
			kind = fmt.Sprintf("[%s](#%s)", kind, anchor(where))
		}
		if slices.Contains(s.Required, name) {
			kind += ", required"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |", name, kind, meaning(&field, item))
		if example {
			fmt.Fprintf(w, " %s |", w.example(at, &field))
		}
		w.WriteString("\n")
	}
	for _, i := range inside {
		if w.seen[content(&i.s)] == "" {
			w.object(i.path, &i.s)
		}
	}
}

// first are the fields that people look for first; the others follow by name.
var first = []string{"targetRefs", "limits", "name", "match", "when", "key", "rate", "burst", "requests", "path", "type"}

func rank(field string) int {
	if i := slices.Index(first, field); i >= 0 {
		return i
	}
	return len(first)
}

func (w *writer) rules(s *schema) {
	for _, r := range s.XValidations {
		fmt.Fprintf(w, "\n- %s", r.Message)
	}
	if len(s.XValidations) > 0 {
		w.WriteString("\n")
	}
}

// example returns the example of a field, which its schema must accept.
func (w *writer) example(path string, s *schema) string {
	w.used[path] = true
	value, ok := w.examples[path]
	if !ok {
		if len(s.Properties) == 0 || w.seen[content(s)] == "" {
			w.errs = append(w.errs, fmt.Errorf("%s has no example", path))
		}
		return ""
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, internal, nil); err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %w", path, err))
		return ""
	}
	check, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %w", path, err))
		return ""
	}
	if result := check.Validate(value); !result.IsValid() {
		w.errs = append(w.errs, fmt.Errorf("example of %s: %w", path, errors.Join(result.Errors...)))
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	return "`" + strings.ReplaceAll(name+": "+flow(value), "|", "\\|") + "`"
}

// flow writes a value as people write it on one line of YAML.
func flow(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, k+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		// As in a flow, where more needs quotes.
		var back map[string]any
		if yaml.Unmarshal([]byte("{a: "+v+"}"), &back) == nil && back["a"] == v {
			return v
		}
		quoted, err := json.Marshal(v)
		if err != nil {
			return v
		}
		if !strings.Contains(v, "'") {
			return "'" + v + "'"
		}
		return string(quoted)
	}
	return fmt.Sprint(value)
}

// typeOf names a field's type, and returns the schema of its items and what leads to them.
func typeOf(s *schema) (kind string, item *schema, suffix string) {
	item = s
	for item.Type == "array" && item.Items != nil && item.Items.Schema != nil {
		item = item.Items.Schema
		suffix += "[]"
		kind += "list of "
	}
	switch {
	case item.XIntOrString:
		kind += "integer or string"
	case item.Type == "object" && len(item.Properties) == 0:
		kind += "map"
	default:
		kind += item.Type
	}
	return kind, item, suffix
}

func meaning(s, item *schema) string {
	text := strings.ReplaceAll(strings.ReplaceAll(s.Description, "\n", " "), "|", "\\|")
	if len(item.Enum) > 0 && !strings.Contains(text, strings.Trim(string(item.Enum[0].Raw), `"`)) {
		var values []string
		for _, e := range item.Enum {
			values = append(values, strings.Trim(string(e.Raw), `"`))
		}
		text += " One of " + strings.Join(values, ", ") + "."
	}
	if item.Default != nil {
		text += " Default: " + strings.Trim(string(item.Default.Raw), `"`) + "."
	}
	return text
}

// content tells schemas of one type from others.
func content(s *schema) string {
	properties, err := json.Marshal(s.Properties)
	if err != nil || len(s.Properties) == 0 {
		return ""
	}
	return string(properties)
}

// anchor is how a heading is linked to.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, heading)
}
