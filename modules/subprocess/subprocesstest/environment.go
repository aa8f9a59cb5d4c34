//go:build unix

package subprocesstest

import (
	"os"
	"strings"
	"testing"

	"dsh/modules/subprocess"
)

func (s suite) environment(t *testing.T) {
	secrets := []string{"API_KEY", "my_Token", "PGPASSWORD", "SSH_PASSPHRASE", "Secret1", "CREDENTIALS_FILE", "DSH_HOME", "DSH_PERMISSION_MODE"}
	for _, name := range secrets {
		t.Setenv(name, "s3cr3t")
	}
	t.Setenv("SUITE_A", "a b=c\nd")
	t.Setenv("SUITE_B", "b")
	t.Setenv("SUITE_HIDDEN", "hidden")
	rt := s.start(t)
	see := func(t *testing.T, edits subprocess.Env) map[string]string {
		t.Helper()
		spec := bash(t, "")
		spec.Argv, spec.Env = []string{"/usr/bin/env", "-0"}, edits
		return parse(run(t, rt, spec))
	}

	t.Run("scrubbed", func(t *testing.T) {
		got := see(t, subprocess.Env{})
		for _, name := range secrets {
			if _, ok := got[name]; ok {
				t.Errorf("%s reached the command", name)
			}
		}
		for _, name := range []string{"SUITE_A", "SUITE_B", "PATH"} {
			if got[name] != os.Getenv(name) {
				t.Errorf("%s: got %q, want %q", name, got[name], os.Getenv(name))
			}
		}
	})
	t.Run("edited", func(t *testing.T) {
		got := see(t, subprocess.Env{
			Unset: []string{"SUITE_*", "HOME"},
			Set:   map[string]string{"SUITE_B": "other", "API_KEY": "given", "NEW": ""},
		})
		for name, want := range map[string]string{"SUITE_B": "other", "API_KEY": "given", "NEW": ""} {
			if value, ok := got[name]; !ok || value != want {
				t.Errorf("%s: got %q, %v, want %q", name, value, ok, want)
			}
		}
		for _, name := range []string{"SUITE_A", "SUITE_HIDDEN", "HOME"} {
			if _, ok := got[name]; ok {
				t.Errorf("%s was unset and reached the command", name)
			}
		}
	})
	t.Run("emptied", func(t *testing.T) {
		got := see(t, subprocess.Env{Unset: []string{"*"}})
		delete(got, "DSH_RANGE") // the runtime's own
		if len(got) > 0 {
			t.Errorf("got %v, want nothing: an empty environment is not the host's", got)
		}
	})
	t.Run("withheld until the last undo", func(t *testing.T) {
		has := func() bool { _, ok := see(t, subprocess.Env{})["SUITE_HIDDEN"]; return ok }
		if !has() {
			t.Fatal("the name is missing before")
		}
		first := rt.Withhold("SUITE_HIDDEN", "SUITE_OTHER")
		second := rt.Withhold("SUITE_HIDDEN")
		if has() {
			t.Error("a withheld name reached the command")
		}
		if got := see(t, subprocess.Env{Set: map[string]string{"SUITE_HIDDEN": "set"}}); got["SUITE_HIDDEN"] != "set" {
			t.Error("a Spec cannot set a withheld name")
		}
		first()
		first()
		if has() {
			t.Error("the first caller's undo, called twice, undid the second's")
		}
		second()
		if !has() {
			t.Error("the name is missing after the last undo")
		}
	})
	t.Run("default path", func(t *testing.T) {
		t.Setenv("PATH", "")
		os.Unsetenv("PATH")
		if got := see(t, subprocess.Env{})["PATH"]; got != "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" {
			t.Errorf("got PATH %q", got)
		}
		if _, err := rt.ResolveExecutable(t.Context(), "env"); err != nil {
			t.Error(err)
		}
	})
}

// parse reads what env -0 prints.
func parse(text string) map[string]string {
	env := map[string]string{}
	for entry := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}
