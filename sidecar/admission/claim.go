// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// claimPart is a claim of a JSON Web Token (RFC 7519) as a part of a key. The signature is somebody else's to check.
type claimPart struct {
	header string   // canonical
	path   []string // into objects
}

func compileClaim(in *quotav1.JWTClaim) (*claimPart, error) {
	if in.GetHeader() == "" || in.GetClaim() == "" {
		return nil, fmt.Errorf("key by a claim without a name or a header")
	}
	return &claimPart{canonical(in.GetHeader()), strings.Split(in.GetClaim(), ".")}, nil
}

func (c *claimPart) value(r *reading) (string, bool) {
	line, ok := r.first(c.header)
	if !ok {
		return "", false
	}
	const bearer = "bearer "
	if len(line) >= len(bearer) && strings.EqualFold(line[:len(bearer)], bearer) {
		line = strings.TrimLeft(line[len(bearer):], " ")
	}
	return claim(line, c.path)
}

// claim reads a claim of a token: a string, a number or a bool.
func claim(token string, path []string) (string, bool) {
	_, rest, ok := strings.Cut(token, ".")
	payload, _, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(payload, "="))
	if err != nil {
		return "", false
	}
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return "", false
		}
		if raw, ok = object[name]; !ok {
			return "", false
		}
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, string(raw) != "null"
	}
	var flag bool
	if json.Unmarshal(raw, &flag) == nil {
		return fmt.Sprint(flag), true
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String(), true
	}
	return "", false
}
