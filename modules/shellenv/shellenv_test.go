package shellenv_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/testkit"
	"dsh/modules/shell"
	"dsh/modules/shellenv"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func registry(t *testing.T) shell.Facts {
	t.Helper()
	r, err := shellenv.New(shellenv.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Facts
}

// says is a contributor of one variable.
func says(name, key, value string) shell.Contributor {
	return shell.Contributor{
		Name: name, Variables: []shell.Variable{{Key: key, Description: "for tests"}},
		Resolve: func(context.Context, shell.Execution) (map[string]string, error) {
			return map[string]string{key: value}, nil
		},
	}
}

func register(t *testing.T, f shell.Facts, c shell.Contributor) (undo func()) {
	t.Helper()
	undo, err := f.Register(c)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

func collect(t *testing.T, f shell.Facts, e shell.Execution) map[string]string {
	t.Helper()
	got, err := f.Collect(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestModule(t *testing.T) {
	t.Parallel()
	m := shellenv.Module()
	if m.Name() != "shell-env" || len(m.Provides()) != 1 || len(m.Needs()) != 0 || !m.Supports("win32") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
}

func TestHomeIsResolved(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("DSH_HOME", "~/elsewhere")
	if got := collect(t, registry(t), shell.Execution{})["DSH_HOME"]; got != "/home/somebody/elsewhere" {
		t.Errorf("DSH_HOME=~/elsewhere is %q to commands", got)
	}
}

func TestASessionIsClaimedOutsideOfOne(t *testing.T) {
	t.Setenv("DSH_HOME", "/opt/dsh")
	f := registry(t)
	want := map[string]string{"DSH_HOME": "/opt/dsh", "DSH_SHELL": "1"}
	if diff := cmp.Diff(want, collect(t, f, shell.Execution{})); diff != "" {
		t.Errorf("outside of a session (-want +got):\n%s", diff)
	}
	want["DSH_SESSION_ID"] = "session-1"
	if diff := cmp.Diff(want, collect(t, f, shell.Execution{SessionID: "session-1"})); diff != "" {
		t.Errorf("in a session (-want +got):\n%s", diff)
	}
}

func TestAFaultyContributorIsTaken(t *testing.T) {
	t.Parallel()
	bad := func(name string, variables ...shell.Variable) shell.Contributor {
		c := says(name, "DSH_X", "")
		c.Variables = variables
		return c
	}
	for _, c := range []struct {
		contributor shell.Contributor
		want        string
	}{
		{bad("", shell.Variable{Key: "bad"}), `bash env contributor name must be non-empty`},
		{bad("first", shell.Variable{Key: "bad"}), `bash env contributor "first" is already registered`},
		{bad("b", shell.Variable{Key: "PATH"}), `bash env contributor "b" declared invalid key "PATH"`},
		{bad("b", shell.Variable{Key: "DSH_"}), `bash env contributor "b" declared invalid key "DSH_"`},
		{bad("b", shell.Variable{Key: "DSH_1"}), `bash env contributor "b" declared invalid key "DSH_1"`},
		{bad("b", shell.Variable{Key: "DSH_a"}), `bash env contributor "b" declared invalid key "DSH_a"`},
		{bad("b", shell.Variable{Key: "DSH_A\n"}), "bash env contributor \"b\" declared invalid key \"DSH_A\n\""},
		{bad("b", shell.Variable{Key: "DSH_HOME"}), `bash env contributor "b" cannot own reserved key "DSH_HOME"`},
		{bad("b", shell.Variable{Key: "DSH_SHELL", Description: "x"}), `bash env contributor "b" cannot own reserved key "DSH_SHELL"`},
		{bad("b", shell.Variable{Key: "DSH_SESSION_ID", Description: "x"}), `bash env contributor "b" cannot own reserved key "DSH_SESSION_ID"`},
		{bad("b", shell.Variable{Key: "DSH_RANGE", Description: "x"}), `bash env contributor "b" cannot own reserved key "DSH_RANGE"`},
		{bad("b", shell.Variable{Key: "DSH_TAKEN"}), `bash env contributor "b" must describe "DSH_TAKEN"`},
		{
			bad("b", shell.Variable{Key: "DSH_TAKEN", Description: "x"}),
			`bash env key "DSH_TAKEN" is already owned by contributor "first"; contributor "b" cannot also own it`,
		},
		{
			bad("b", shell.Variable{Key: "DSH_B", Description: "x"}, shell.Variable{Key: "DSH_B", Description: "x"}),
			`bash env key "DSH_B" is already owned by contributor "b"; contributor "b" cannot also own it`,
		},
		{
			bad("b", shell.Variable{Key: "DSH_B", Description: "x"}, shell.Variable{Key: "DSH_TAKEN", Description: "x"}),
			`bash env key "DSH_TAKEN" is already owned by contributor "first"; contributor "b" cannot also own it`,
		},
		{shell.Contributor{Name: "b"}, `bash env contributor "b" has no Resolve`},
	} {
		f := registry(t)
		register(t, f, says("first", "DSH_TAKEN", "1"))
		if _, err := f.Register(c.contributor); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		// What was refused has left nothing behind.
		register(t, f, says("b", "DSH_B", "2"))
	}
}

func TestAnUndeclaredKeyPasses(t *testing.T) {
	t.Parallel()
	f := registry(t)
	c := says("liar", "DSH_DECLARED", "1")
	c.Resolve = func(context.Context, shell.Execution) (map[string]string, error) {
		return map[string]string{"DSH_OTHER": "1", "PATH": "/evil"}, nil
	}
	register(t, f, c)
	got, err := f.Collect(t.Context(), shell.Execution{})
	if want := `bash env contributor "liar" returned undeclared key "DSH_OTHER"`; err == nil || err.Error() != want || got != nil {
		t.Errorf("got %v, error %v, want %s", got, err, want)
	}
}

func TestAFailingContributorIsSkipped(t *testing.T) {
	t.Parallel()
	f := registry(t)
	broken := errors.New("disk on fire")
	c := says("broken", "DSH_BROKEN", "")
	c.Resolve = func(context.Context, shell.Execution) (map[string]string, error) { return nil, broken }
	undo := register(t, f, c)
	if _, err := f.Collect(t.Context(), shell.Execution{}); !errors.Is(err, broken) || err.Error() != `bash env contributor "broken": disk on fire` {
		t.Errorf("error %v, want the contributor's, under its name", err)
	}
	undo()
	if _, err := f.Collect(t.Context(), shell.Execution{}); err != nil {
		t.Errorf("after the contributor has gone: %v", err)
	}
}

func TestValuesAreOld(t *testing.T) {
	t.Parallel()
	f := registry(t)
	calls := 0
	c := says("counter", "DSH_CALLS", "")
	c.Resolve = func(_ context.Context, e shell.Execution) (map[string]string, error) {
		calls++
		return map[string]string{"DSH_CALLS": fmt.Sprintf("%d %s", calls, e.SessionID)}, nil
	}
	register(t, f, c)
	for _, want := range []string{"1 s", "2 s"} {
		got := collect(t, f, shell.Execution{SessionID: "s"})
		if got["DSH_CALLS"] != want {
			t.Errorf("DSH_CALLS is %q, want %q", got["DSH_CALLS"], want)
		}
		got["DSH_SHELL"] = "changed by the caller"
	}
	if got := collect(t, f, shell.Execution{}); got["DSH_SHELL"] != "1" {
		t.Error("a caller changed another call's snapshot")
	}
}

func TestUndoRemovesAnother(t *testing.T) {
	t.Parallel()
	f := registry(t)
	old := register(t, f, says("a", "DSH_A", "old"))
	old()
	register(t, f, says("a", "DSH_A", "new"))
	old()
	if got := collect(t, f, shell.Execution{})["DSH_A"]; got != "new" {
		t.Errorf("DSH_A is %q, want the later registration's", got)
	}
	register(t, f, says("z", "DSH_B", "1"))
	want := []shell.Variable{{Key: "DSH_A", Description: "for tests"}, {Key: "DSH_B", Description: "for tests"}}
	if diff := cmp.Diff(want, f.Declared()); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
}

func TestContributorsMayUseTheRegistry(t *testing.T) {
	t.Parallel()
	f := registry(t)
	c := says("a", "DSH_A", "")
	c.Resolve = func(context.Context, shell.Execution) (map[string]string, error) {
		return map[string]string{"DSH_A": fmt.Sprint(len(f.Declared()))}, nil
	}
	register(t, f, c)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			undo, err := f.Register(says(fmt.Sprint("n", i), fmt.Sprint("DSH_N", i), "1"))
			if err != nil {
				t.Error(err)
				return
			}
			defer undo()
			if _, err := f.Collect(t.Context(), shell.Execution{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := collect(t, f, shell.Execution{})["DSH_A"]; got != "1" {
		t.Errorf("declared %s variables, want 1", got)
	}
}
