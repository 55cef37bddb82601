// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type object = map[string]any

// describe writes what values mean into a schema that has all of them, and no other.
func describe(old []byte, values []value) ([]byte, error) {
	var root object
	if err := json.Unmarshal(old, &root); err != nil {
		return nil, err
	}
	forget(root)
	var errs []error
	for _, v := range values {
		if err := put(root, root, v.path, v.meaning); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.Join(v.path, "."), err))
		}
	}
	errs = append(errs, undescribed(root, root, nil, values)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// forget takes old descriptions away, but for those of what values.yaml does not have.
func forget(schema object) {
	properties, _ := schema["properties"].(object)
	for name, p := range properties {
		if s, ok := p.(object); ok && name != "global" {
			delete(s, "description")
			forget(s)
		}
	}
}

// put describes what is at a path. Beside a reference there can be more: two images have one form, and two meanings.
func put(root, schema object, path []string, meaning string) error {
	target := resolve(root, schema)
	known, _ := target["properties"].(object)
	if _, ok := known[path[0]]; !ok {
		return errors.New("the schema does not have it")
	}
	properties, ok := schema["properties"].(object)
	if !ok {
		properties = object{}
		schema["properties"] = properties
	}
	next, ok := properties[path[0]].(object)
	if !ok {
		next = object{}
		properties[path[0]] = next
	}
	if len(path) == 1 {
		next["description"] = meaning
		return nil
	}
	if _, ok := next["$ref"]; !ok && len(next) == 0 {
		return errors.New("a reference in a reference is not followed")
	}
	return put(root, next, path[1:], meaning)
}

// undescribed lists the properties of a schema that values.yaml does not have.
func undescribed(root, schema object, path []string, values []value) (errs []error) {
	properties, _ := resolve(root, schema)["properties"].(object)
	for name, p := range properties {
		at := append(append([]string(nil), path...), name)
		switch found, whole := look(values, at); {
		case whole || name == "global":
		case !found:
			errs = append(errs, fmt.Errorf("%s: values.yaml does not have it", strings.Join(at, ".")))
		default:
			errs = append(errs, undescribed(root, p.(object), at, values)...)
		}
	}
	return errs
}

// look reports whether there are values at or below a path, and whether one stands for all that is below.
func look(values []value, path []string) (found, whole bool) {
	text := strings.Join(path, ".")
	for _, v := range values {
		have := strings.Join(v.path, ".")
		if have == text {
			return true, true
		}
		found = found || strings.HasPrefix(have, text+".")
	}
	return found, false
}

// resolve follows a reference to a definition.
func resolve(root, schema object) object {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	definitions, _ := root["$defs"].(object)
	target, _ := definitions[strings.TrimPrefix(ref, "#/$defs/")].(object)
	return target
}
