// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const sample = `# How many.
replicas: 2
image:
  # Where from,
  # in full.
  repository: x
`

const schema = `{"properties":{"replicas":{"type":"integer"},"image":{"$ref":"#/$defs/image"}},"$defs":{"image":{"properties":{"repository":{}}}}}`

func TestEveryValueIsDescribedInBothPlaces(t *testing.T) {
	values, err := read([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := "| `replicas` | `2` | How many. |\n| `image.repository` | `\"x\"` | Where from, in full. |\n"
	if got := table(values); !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s", got)
	}
	once, err := describe([]byte(schema), values)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"description": "How many."`, `"description": "Where from, in full."`} {
		if !strings.Contains(string(once), want) {
			t.Errorf("the schema lacks %s:\n%s", want, once)
		}
	}
	if twice, err := describe(once, values); err != nil || string(twice) != string(once) {
		t.Errorf("the second time it becomes (%v)\n%s", err, twice)
	}
}

func TestAValueThatOnlyOneFileHasIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ values, schema, want string }{
		"nobody describes it":      {sample + "more: 1\n", schema, "nobody describes more"},
		"the schema lacks it":      {sample + "# More.\nmore: 1\n", schema, "more: the schema does not have it"},
		"values.yaml lacks it":     {sample, strings.Replace(schema, `"replicas"`, `"pods":{},"replicas"`, 1), "pods: values.yaml does not have it"},
		"values.yaml lacks a part": {sample, strings.Replace(schema, `"repository"`, `"tag":{},"repository"`, 1), "image.tag: values.yaml does not have it"},
	} {
		values, err := read([]byte(tc.values))
		if err == nil {
			_, err = describe([]byte(tc.schema), values)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
