// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/oracle"
)

// Records reads what the pods of one namespace have recorded in a folder; others may have recorded there, too.
func Records(folder, namespace string) ([]*record.File, error) {
	files, err := oracle.Load(folder)
	return slices.DeleteFunc(files, func(f *record.File) bool { return !strings.HasPrefix(f.Pod, namespace+"/") }), err
}
