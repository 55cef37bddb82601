// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write the golden files")

// call runs the plugin as kubectl does.
func call(t *testing.T, in string, args ...string) (failed bool, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	c := New(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &o, ErrOut: &e})
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		return true, o.String(), "error: " + err.Error() + "\n"
	}
	return false, o.String(), e.String()
}

func TestInjectShowsWhatTheWebhookWouldMakeOfAFile(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, in := range inputs {
		golden := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
		t.Run(filepath.Base(in), func(t *testing.T) {
			_, out, errOut := call(t, "", "inject", "-f", in)
			got := out + errOut
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got); go test ./cmd/kubectl-headgate/plugin -update writes it:\n%s", golden, diff)
			}
			if !strings.Contains(golden, "refused") {
				failed, again, errOut := call(t, out, "inject", "-f", "-")
				if diff := cmp.Diff(out, again); failed || diff != "" {
					t.Errorf("what was injected is injected again: %s\n%s", errOut, diff)
				}
			}
		})
	}
}

func TestEjectGivesBackWhatInjectTook(t *testing.T) {
	for _, in := range []string{"testdata/a-shop.in.yaml", "testdata/a-list.in.yaml"} {
		_, before, _ := call(t, "", "eject", "-f", in) // nothing is in it to take out
		_, injected, _ := call(t, "", "inject", "-f", in)
		failed, after, errOut := call(t, injected, "eject", "-f", "-")
		if diff := cmp.Diff(before, after); failed || diff != "" {
			t.Errorf("%s: the way back differs: %s\n%s", in, errOut, diff)
		}
		if !strings.Contains(injected, "name: headgate\n") || strings.Contains(after, "headgate") && !strings.Contains(before, "headgate") {
			t.Errorf("%s: nothing was injected, or something was left:\n%s", in, after)
		}
	}
}

func TestWrongCallsSayWhatToType(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a release of nobody":      {[]string{"release"}, "accepts 1 arg"},
		"a release of two":         {[]string{"release", "a", "b"}, "accepts 1 arg"},
		"no file":                  {[]string{"inject"}, `"filename" not set`},
		"a file that is not there": {[]string{"inject", "-f", "nothing.yaml"}, "no such file"},
		"a flag that is not there": {[]string{"inject", "--magic"}, "magic"},
		"no cluster":               {[]string{"release", "a", "--kubeconfig", "nothing.yaml"}, "kubeconfig:"},
		"no file to eject":         {[]string{"eject"}, `"filename" not set`},
		"two policies":             {[]string{"status", "a", "b"}, "accepts at most 1 arg"},
		"an interval of nothing":   {[]string{"top", "--interval", "1ms"}, "at least 500ms"},
		"a table for a program":    {[]string{"top", "-o", "json"}, "--once"},
	} {
		t.Run(name, func(t *testing.T) {
			if failed, out, errOut := call(t, "", tc.args...); !failed || !strings.Contains(errOut, tc.want) {
				t.Errorf("%q; want an error that says %q", out+errOut, tc.want)
			}
		})
	}
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":            "a: [",
		"a list":             "- a",
		"a broken policy":    "kind: RateLimitPolicy\nmetadata: {name: a}\nspec: [1]",
		"a broken workload":  "kind: Deployment\nmetadata: {name: a}\nspec: {template: 5}",
		"a broken Service":   "kind: Service\nmetadata: {name: a}\nspec: {ports: 5}",
		"a pod of something": "kind: Pod\nmetadata: {name: a}\nspec: 5",
	} {
		t.Run(name, func(t *testing.T) {
			if failed, out, _ := call(t, text, "inject", "-f", "-"); !failed {
				t.Errorf("accepted: %q", out)
			}
		})
	}
}
