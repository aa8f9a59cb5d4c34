package toolbash_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/approval"
	"dsh/modules/bashsandbox"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/sandboxpolicy"
	"dsh/modules/shellenv"
	"dsh/modules/subprocesslocal"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// overSandbox is a registry with the tool over the real sandbox.
func overSandbox(t *testing.T, mode sandbox.Mode, ws, home string, a approval.Service) tools.Registry {
	t.Helper()
	testkit.NeedProgram(t, "bwrap")
	t.Setenv("DSH_HOME", home)
	log := slog.New(slog.DiscardHandler)
	stops := func(stop func(context.Context) error) {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	sub, err := subprocesslocal.New(subprocesslocal.Params{Config: subprocesslocal.DefaultConfig(), Log: log})
	must(t, err)
	must(t, sub.Runner.Start(t.Context()))
	stops(sub.Runner.Stop)
	c := sandboxlocal.DefaultConfig()
	c.Backend = sandboxlocal.BackendBwrap
	provider, err := sandboxlocal.New(sandboxlocal.Params{Config: c, Runtime: sub.Runtime, Log: log})
	must(t, err)
	stops(provider.Runner.Stop)
	policies, err := sandboxpolicy.New(sandboxpolicy.Params{Config: sandboxpolicy.Config{Mode: mode, WorkspaceRoot: ws}})
	must(t, err)
	sh, err := bashsandbox.New(bashsandbox.Params{
		Config: bashsandbox.DefaultConfig(), Runtime: sub.Runtime, Sandbox: provider.Provider, Policies: policies.Policies,
	})
	must(t, err)
	must(t, sh.Run.Start(t.Context()))
	facts, err := shellenv.New(shellenv.Params{})
	must(t, err)
	registry := toolslocal.New(toolslocal.Params{Log: log, Approval: a}).Registry
	must(t, toolbash.New(toolbash.Params{
		Config: toolbash.DefaultConfig(), Tools: registry, Shell: sh.Executor, Facts: facts.Facts,
		Policies: policies.Policies, Approval: a,
	}).Runner.Start(t.Context()))
	return registry
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestADeniedCommandIsEscalatedOnce(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	must(t, err)
	defer os.RemoveAll(dir)
	ws, file := filepath.Join(dir, "ws"), filepath.Join(dir, "ws", "made")
	must(t, os.Mkdir(ws, 0o700))
	service := &answers{all: []approval.Outcome{approval.Rejected, approval.AllowedOnce}}
	r := overSandbox(t, sandbox.ReadOnly, ws, filepath.Join(dir, "home"), service)
	call := func(more ...any) tools.Result {
		e := with("touch made && echo done", more...)
		e.Session = &tools.SessionRef{ID: "session-1", CWD: ws}
		return r.Execute(t.Context(), e)
	}
	const refused = "[stderr]\ntouch: cannot touch 'made': Read-only file system\n" +
		"[sandbox: file access denied under read-only mode]\n" +
		"[sandbox: escalation available — retry this exact command once with sandbox_permissions (the narrowest wider mode that suffices) + justification; the approval prompt asks the user]\n" +
		"[exit code: 1]"
	want := func(when string, got tools.Result, content string, made bool) {
		t.Helper()
		if got.Content != content {
			t.Errorf("%s: got\n%s\nwant\n%s", when, got.Content, content)
		}
		if _, err := os.Stat(file); (err == nil) != made {
			t.Errorf("%s: the file is there: %v", when, err == nil)
		}
	}
	escalation := []any{"sandbox_permissions", "workspace-write", "justification", "The task is to make it."}
	want("at first", call(), refused, false)
	want("rejected", call(escalation...), `Error: the user rejected escalating this command to "workspace-write"`, false)
	got := call(escalation...)
	want("allowed", got, "done\n", true)
	var value struct{ Sandbox sandbox.Facts }
	must(t, json.Unmarshal(got.Value, &value))
	if value.Sandbox != (sandbox.Facts{Mode: sandbox.WorkspaceWrite, Enforcement: sandbox.Full, Backend: "bwrap"}) {
		t.Errorf("allowed: %+v", value.Sandbox)
	}
	must(t, os.Remove(file))
	want("afterwards", call(), refused, false)
}

func TestDirectoriesOfTheSessionsTmpCanBeStartedIn(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	must(t, err)
	defer os.RemoveAll(dir)
	r := overSandbox(t, sandbox.WorkspaceWrite, dir, filepath.Join(dir, "home"), nil)
	if got := r.Execute(t.Context(), with("mkdir -p /tmp/build && pwd")); got.Content != dir+"\n" {
		t.Fatalf("got %q", got.Content)
	}
	if got := r.Execute(t.Context(), with("pwd", "workdir", "/tmp/build")); got.Content != "/tmp/build\n" {
		t.Errorf("got %q", got.Content)
	}
	got := r.Execute(t.Context(), with("pwd", "workdir", "/tmp/other"))
	if got.Error == nil || got.Error.Code != tools.CodeWorkdir || !strings.HasSuffix(got.Error.Message, "does not exist") {
		t.Errorf("got %+v", got.Error)
	}
}
