package toolbash_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeShell returns what a test wants, and keeps what it was asked for.
type fakeShell struct {
	workdir  string       // the executor's own default
	mode     sandbox.Mode // empty: it does not confine
	resolved []shell.Request
	ran      []shell.Spec
	run      func(context.Context, shell.Spec) (shell.Result, error)
}

func (f *fakeShell) Mode() (sandbox.Mode, bool) { return f.mode, f.mode != "" }

func (f *fakeShell) Resolve(r shell.Request) (shell.Spec, error) {
	f.resolved = append(f.resolved, r)
	if strings.ContainsRune(r.Command, 0) {
		return shell.Spec{}, &shell.InvalidError{Field: "command", Reason: "it contains a NUL byte"}
	}
	s := shell.Spec{
		Command: r.Command, Workdir: r.Workdir, Timeout: 2 * time.Minute, Stdin: r.Stdin, Facts: r.Facts, Progress: r.Progress, Policy: r.Policy,
	}
	if s.Workdir == "" {
		s.Workdir = f.workdir
	}
	if s.Workdir == "" && r.Policy != nil {
		s.Workdir = r.Policy.WorkspaceRoot
	}
	if r.Timeout != nil {
		s.Timeout = *r.Timeout
	}
	return s, nil
}

func (f *fakeShell) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	f.ran = append(f.ran, s)
	if f.run == nil {
		return exited(0), nil
	}
	return f.run(ctx, s)
}

func (f *fakeShell) Start(context.Context, shell.Spec) (shell.Process, error) {
	panic("the tool starts nothing in the background")
}

func exited(code int) shell.Result {
	return shell.Result{ExitCode: &code, TimeoutMs: 120000, Range: "group"}
}

func killed(signal string) shell.Result {
	return shell.Result{Signal: &signal, TimeoutMs: 500, Range: "group"}
}

// fakeFacts collects one variable, which says for whom.
type fakeFacts struct{ err error }

func (f fakeFacts) Register(shell.Contributor) (func(), error) { return func() {}, nil }
func (f fakeFacts) Declared() []shell.Variable                 { return nil }

func (f fakeFacts) Collect(_ context.Context, e shell.Execution) (map[string]string, error) {
	return map[string]string{"DSH_SESSION_ID": e.SessionID}, f.err
}

// mounted is a registry in which the tool has been started, over these parts.
func mounted(t testing.TB, sh shell.Executor, facts shell.Facts, c toolbash.Config) tools.Registry {
	t.Helper()
	registry := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	runner := toolbash.New(toolbash.Params{Config: c, Tools: registry, Shell: sh, Facts: facts}).Runner
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if left := registry.Definitions(); len(left) > 0 {
			t.Errorf("left in the registry: %d tools", len(left))
		}
	})
	return registry
}

func withShell(t testing.TB, sh shell.Executor) tools.Registry {
	return mounted(t, sh, fakeFacts{}, toolbash.DefaultConfig())
}

// with returns a call with a command and a description, and more as alternating names and values.
func with(command string, more ...any) tools.Execution {
	members := map[string]any{"command": command, "description": "Do what the test wants"}
	for i := 0; i < len(more); i += 2 {
		members[more[i].(string)] = more[i+1]
	}
	arguments, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return tools.Execution{CallID: "call-1", Name: "bash", Arguments: arguments}
}

func wantError(t testing.TB, got tools.Result, code, message string) {
	t.Helper()
	if got.Error == nil || got.Error.Code != code || got.Error.Message != message || got.Content != "Error: "+message {
		t.Fatalf("got content %q, error %+v, want %s %q", got.Content, got.Error, code, message)
	}
}
