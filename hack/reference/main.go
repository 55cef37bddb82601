// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the reference of RateLimitPolicy from its CRD: every field with its type, its default, what it means
// and an example.
//
//	go run ./hack/reference CRD EXAMPLES PAGE
package main

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: reference CRD EXAMPLES PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(crdFile, examplesFile, page string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := read(crdFile, crd); err != nil {
		return err
	}
	examples := map[string]any{}
	if err := read(examplesFile, &examples); err != nil {
		return err
	}
	text, err := render(crd, examples)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

func read(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
