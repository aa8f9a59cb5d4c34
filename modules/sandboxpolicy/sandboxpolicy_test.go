package sandboxpolicy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandbox/sandboxtest"
	"dsh/modules/sandboxpolicy"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t testing.TB, mode sandbox.Mode, root string, o sandbox.Overrides) sandbox.Policies {
	t.Helper()
	r, err := sandboxpolicy.New(sandboxpolicy.Params{
		Config: sandboxpolicy.Config{Mode: mode, WorkspaceRoot: root}, Overrides: o,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Policies
}

func TestPoliciesKeepTheContract(t *testing.T) {
	sandboxtest.RunPolicies(t, open)
}

func TestNoRootIsTheWorkingDirectory(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t, sandbox.ReadOnly, "", nil).Resolve(t.Context(), sandbox.Session{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(wd); p.WorkspaceRoot != want {
		t.Errorf("got %s, want %s", p.WorkspaceRoot, want)
	}
}

func TestARelativeRootIsRefused(t *testing.T) {
	t.Parallel()
	for _, root := range []string{".", "w", "~/w"} {
		err := sandboxpolicy.Config{Mode: sandbox.ReadOnly, WorkspaceRoot: root}.Validate()
		if err == nil || !strings.Contains(err.Error(), "workspaceRoot must be an absolute path") {
			t.Errorf("%q: got %v", root, err)
		}
	}
}

func TestDefaultsAreTheNarrowest(t *testing.T) {
	t.Parallel()
	c := sandboxpolicy.DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Mode != sandbox.ReadOnly || c.WorkspaceRoot != "" {
		t.Errorf("got %+v", c)
	}
}

func TestAMisspeltModeIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{"", "workspace_write", "Read-Only", "none"} {
		err := sandboxpolicy.Config{Mode: mode, WorkspaceRoot: "/\x00"}.Validate()
		if err == nil || !strings.Contains(err.Error(), "mode must be") || !strings.Contains(err.Error(), "NUL") {
			t.Errorf("mode %q: got %v, want a complaint about it and about the root", mode, err)
		}
		if _, err := sandboxpolicy.New(sandboxpolicy.Params{Config: sandboxpolicy.Config{Mode: mode}}); err == nil {
			t.Errorf("mode %q: New took it", mode)
		}
	}
}

func TestModuleIsWellFormed(t *testing.T) {
	t.Parallel()
	m := sandboxpolicy.Module()
	if len(m.Provides()) != 1 || len(m.Needs()) != 2 || !m.Needs()[0].Optional || !m.Needs()[1].Optional {
		t.Errorf("provides %v, needs %v", m.Provides(), m.Needs())
	}
}
