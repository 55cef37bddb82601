// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// created is the same for every build: a clock would make two equal documents differ.
const created = "1970-01-01T00:00:00Z"

// sbom says in SPDX what a binary is made of: Go has written into it which modules, of which version and content, it links.
func sbom(program string, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("what %s is made of: %w", program, err)
	}
	sum := hex.EncodeToString(sum256(binary))
	root := module(&info.Main, program)
	root.PackageSPDXIdentifier, root.PackageName, root.PrimaryPackagePurpose = "Program", program, "APPLICATION"
	root.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      program,
		DocumentNamespace: source + "/sbom/" + program + "-" + sum,
		CreationInfo:      &spdx.CreationInfo{Created: created, Creators: []common.Creator{{CreatorType: "Tool", Creator: "headgate-image"}}},
		Packages:          []*spdx.Package{root},
		Relationships:     []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, "Program")},
	}
	stdlib := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range append([]*debug.Module{stdlib}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		p := module(m, m.Path)
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relation("Program", common.TypeRelationshipDependsOn, p.PackageSPDXIdentifier))
	}
	var out bytes.Buffer
	if err := json.Write(doc, &out, json.Indent(" ")); err != nil {
		return nil, fmt.Errorf("SPDX of %s: %w", program, err)
	}
	return out.Bytes(), nil
}

func module(m *debug.Module, name string) *spdx.Package {
	p := &spdx.Package{
		PackageName: name, PackageVersion: m.Version,
		PackageSPDXIdentifier:   common.ElementID("Module-" + hex.EncodeToString(sum256([]byte(m.Path + "@" + m.Version))[:8])),
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION",
		PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + m.Path + "@" + url.PathEscape(m.Version),
		}},
	}
	// Go's sum is of the module's list of files, as base64.
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(raw) == sha256.Size {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(raw)}}
	}
	return p
}

func relation(a common.ElementID, kind string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: kind}
}

func sum256(b []byte) []byte {
	s := sha256.Sum256(b)
	return s[:]
}

// keep writes what the parts are made of to a folder.
func keep(parts []part, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("SPDX folder: %w", err)
	}
	for _, p := range parts {
		if err := os.WriteFile(filepath.Join(folder, p.name+"."+p.arch+".spdx.json"), p.sbom, 0o644); err != nil {
			return fmt.Errorf("SPDX: %w", err)
		}
	}
	return nil
}
