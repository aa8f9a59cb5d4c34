package toolbash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"dsh/modules/approval"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// fixedPolicies has the same policy for all, in a workspace of its own.
type fixedPolicies struct {
	mode    sandbox.Mode
	session sandbox.Mode // that sessions were switched to; empty: none was
	asked   []sandbox.Session
}

func (p *fixedPolicies) Default() sandbox.Mode { return p.mode }

func (p *fixedPolicies) Resolve(_ context.Context, s sandbox.Session, approved sandbox.Mode) (sandbox.Policy, error) {
	p.asked = append(p.asked, s)
	if approved != "" {
		return sandbox.Policy{}, errors.New("the tool has the mode, not the home of policies")
	}
	return sandbox.Policy{Mode: cmp.Or(p.session, p.mode), WorkspaceRoot: "/the/workspace", SessionID: s.ID}, nil
}

// answers answers in turn, and keeps what it was asked.
type answers struct {
	all   []approval.Outcome
	asked []approval.Request
}

func (a *answers) Ask(_ context.Context, r approval.Request) approval.Outcome {
	a.asked = append(a.asked, r)
	return a.all[len(a.asked)-1]
}

// confining mounts the tool over an executor that confines.
func confining(t testing.TB, sh *fakeShell, p sandbox.Policies, a approval.Service) tools.Registry {
	t.Helper()
	registry := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	runner := toolbash.New(toolbash.Params{
		Config: toolbash.DefaultConfig(), Tools: registry, Shell: sh, Facts: fakeFacts{}, Policies: p, Approval: a,
	}).Runner
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return registry
}

func escalated(mode string, session *tools.SessionRef) tools.Execution {
	e := with("make install", "sandbox_permissions", mode, "justification", "It must write outside.")
	e.Session = session
	return e
}

var aSession = &tools.SessionRef{ID: "session-1", CWD: "/the/workspace"}

func TestEscalationIsOfferedWhereThereIsASandbox(t *testing.T) {
	r := confining(t, &fakeShell{mode: sandbox.ReadOnly}, &fixedPolicies{mode: sandbox.ReadOnly}, nil)
	d := r.Definitions()[0]
	var names []string
	for _, p := range d.Parameters.Properties {
		names = append(names, p.Name)
	}
	if diff := gocmp.Diff([]string{"command", "description", "timeoutMs", "workdir", "sandbox_permissions", "justification"}, names); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	document, err := json.Marshal(d.Parameters)
	if err != nil || !strings.Contains(string(document), `"enum":["workspace-write","danger-full-access"]`) {
		t.Errorf("got %s, %v", document, err)
	}
	if !strings.Contains(d.Description, "sandbox") {
		t.Errorf("the description does not speak of the sandbox: %s", d.Description)
	}
}

func TestAConfiningShellNeedsPolicies(t *testing.T) {
	registry := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	err := toolbash.New(toolbash.Params{Tools: registry, Shell: &fakeShell{mode: sandbox.ReadOnly}, Facts: fakeFacts{}}).Runner.Start(t.Context())
	if err == nil || err.Error() != "tool-bash: the mounted bash executor confines but ctx.sandboxPolicy is missing" || len(registry.Definitions()) > 0 {
		t.Errorf("got %v and %d tools", err, len(registry.Definitions()))
	}
}

func TestAModeThatNobodyEnforcesRunsNothing(t *testing.T) {
	registry := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	err := toolbash.New(toolbash.Params{
		Tools: registry, Shell: &fakeShell{}, Facts: fakeFacts{}, Policies: &fixedPolicies{mode: sandbox.ReadOnly},
	}).Runner.Start(t.Context())
	if err == nil || err.Error() != "tool-bash: the policy's mode is read-only, but the mounted bash executor confines nothing" || len(registry.Definitions()) > 0 {
		t.Errorf("read-only in the rows: got %v and %d tools", err, len(registry.Definitions()))
	}
	for _, session := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite} {
		sh, policies := &fakeShell{}, &fixedPolicies{mode: sandbox.DangerFullAccess}
		r := confining(t, sh, policies, nil)
		got := r.Execute(t.Context(), with("true"))
		if got.Error != nil || len(sh.ran) != 1 {
			t.Errorf("full access: got %v", got.Error)
		}
		policies.session = session
		e := with("true")
		e.Session = aSession
		if got := r.Execute(t.Context(), e); got.Error == nil || got.Error.Code != sandbox.CodeUnavailable || len(sh.ran) != 1 {
			t.Errorf("a session switched to %s: got %v, and %d commands ran", session, got.Error, len(sh.ran))
		}
	}
}

func TestEscalationsThatAreRefusedRunNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		standing sandbox.Mode
		service  *answers
		call     tools.Execution
		code     string
		want     string
	}{
		{"no wider mode", sandbox.DangerFullAccess, &answers{}, escalated("workspace-write", aSession), tools.CodeInvalidArgs, `sandbox escalation to "workspace-write" is not strictly wider than this call's current "danger-full-access" mode`},
		{"no service", sandbox.ReadOnly, nil, escalated("workspace-write", aSession), tools.CodeDenied, `sandbox escalation to "workspace-write" requires approval, but no approval service is composed`},
		{"no session", sandbox.ReadOnly, &answers{}, escalated("workspace-write", nil), tools.CodeDenied, `sandbox escalation to "workspace-write" requires approval, but the call has no agent to route it through`},
		{"a no", sandbox.ReadOnly, &answers{all: []approval.Outcome{approval.Rejected}}, escalated("danger-full-access", aSession), tools.CodeDenied, `the user rejected escalating this command to "danger-full-access"`},
		{"a cancelled question", sandbox.ReadOnly, &answers{all: []approval.Outcome{approval.Cancelled}}, escalated("workspace-write", aSession), tools.CodeDenied, `approval for escalating to "workspace-write" was cancelled`},
		{"nobody to ask", sandbox.ReadOnly, &answers{all: []approval.Outcome{approval.Unavailable}}, escalated("workspace-write", aSession), tools.CodeDenied, `sandbox escalation to "workspace-write" requires approval, but no approval channel is available`},
		{"an answer that nobody knows", sandbox.ReadOnly, &answers{all: []approval.Outcome{"allowed-always"}}, escalated("workspace-write", aSession), tools.CodeDenied, `sandbox escalation to "workspace-write" requires approval, but no approval channel is available`},
		{"a mode that is none", sandbox.ReadOnly, &answers{}, escalated("root", aSession), tools.CodeInvalidArgs, `invalid arguments: sandbox_permissions: must be one of ["workspace-write","danger-full-access"]`},
		{"a mode that is not offered", sandbox.WorkspaceWrite, &answers{}, escalated("read-only", aSession), tools.CodeInvalidArgs, `invalid arguments: sandbox_permissions: must be one of ["workspace-write","danger-full-access"]`},
		{"no reason", sandbox.ReadOnly, &answers{}, with("x", "sandbox_permissions", "workspace-write"), tools.CodeInvalidArgs, "invalid escalation: sandbox_permissions requires a justification"},
	} {
		sh := &fakeShell{mode: c.standing}
		var service approval.Service
		if c.service != nil {
			service = c.service
		}
		r := confining(t, sh, &fixedPolicies{mode: c.standing}, service)
		got := r.Execute(t.Context(), c.call)
		if got.Error == nil || got.Error.Code != c.code || got.Error.Message != c.want {
			t.Errorf("%s: got %+v, want %s %q", c.name, got.Error, c.code, c.want)
		}
		if len(sh.ran) > 0 {
			t.Errorf("%s: a command was run", c.name)
		}
	}
}

func TestAnApprovalIsForOneCall(t *testing.T) {
	sh := &fakeShell{mode: sandbox.ReadOnly}
	service := &answers{all: []approval.Outcome{approval.AllowedOnce, approval.Rejected}}
	policies := &fixedPolicies{mode: sandbox.ReadOnly}
	r := confining(t, sh, policies, service)
	for range 2 {
		r.Execute(t.Context(), escalated("workspace-write", aSession))
		plain := with("make")
		plain.Session = aSession
		r.Execute(t.Context(), plain)
	}
	var modes []sandbox.Mode
	for _, s := range sh.ran {
		modes = append(modes, s.Policy.Mode)
		if s.Policy.SessionID != "session-1" || s.Policy.WorkspaceRoot != "/the/workspace" || s.Workdir != "/the/workspace" {
			t.Errorf("got %+v in %s", s.Policy, s.Workdir)
		}
	}
	if diff := gocmp.Diff([]sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly, sandbox.ReadOnly}, modes); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
	want := approval.Request{
		SessionID: "session-1", Tool: "bash", CallID: "call-1", Detail: "make install",
		Reason: "escalate sandbox to workspace-write: It must write outside.",
	}
	if diff := gocmp.Diff([]approval.Request{want, want}, service.asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if got := policies.asked[0]; got != (sandbox.Session{ID: "session-1", CWD: "/the/workspace"}) {
		t.Errorf("the policy was asked for %+v", got)
	}
}

func TestNobodyIsAskedForWhatHolds(t *testing.T) {
	sh := &fakeShell{mode: sandbox.WorkspaceWrite}
	r := confining(t, sh, &fixedPolicies{mode: sandbox.WorkspaceWrite}, nil)
	if got := r.Execute(t.Context(), escalated("workspace-write", nil)); got.Error != nil || len(sh.ran) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestWhatTheSandboxDidIsTold(t *testing.T) {
	const hint = "[sandbox: escalation available — retry this exact command once with sandbox_permissions (the narrowest wider mode that suffices) + justification; the approval prompt asks the user]"
	denied := &sandbox.Facts{Mode: sandbox.ReadOnly, Denied: true, Enforcement: sandbox.Full, Backend: "bwrap"}
	failed := exited(1)
	failed.Stderr, failed.Sandbox = shell.Output{Text: "touch: x: Read-only file system\n"}, denied
	all := failed
	all.TimedOut, all.TimeoutClamped, all.Survivors = true, true, 2
	fine := exited(0)
	fine.Sandbox = &sandbox.Facts{Mode: sandbox.WorkspaceWrite, Enforcement: sandbox.Partial, Backend: "landlock"}
	for _, c := range []struct {
		name   string
		result shell.Result
		want   string
	}{
		{"denied", failed, "[stderr]\ntouch: x: Read-only file system\n[sandbox: file access denied under read-only mode]\n" + hint + "\n[exit code: 1]"},
		{"everything at once", all, "[stderr]\ntouch: x: Read-only file system\n[timeout reduced to 120000ms]\n[2 process(es) of this command still running; they end with the session]\n[sandbox: file access denied under read-only mode]\n" + hint + "\n[timed out after 120000ms]\n[exit code: 1]"},
		{"not denied", fine, "(no output)"},
	} {
		sh := &fakeShell{mode: sandbox.ReadOnly, run: func(context.Context, shell.Spec) (shell.Result, error) { return c.result, nil }}
		got := confining(t, sh, &fixedPolicies{mode: sandbox.ReadOnly}, nil).Execute(t.Context(), with("x"))
		if got.Error != nil || got.Content != c.want {
			t.Errorf("%s: got error %+v and\n%s\nwant\n%s", c.name, got.Error, got.Content, c.want)
		}
		var value struct{ Sandbox *sandbox.Facts }
		if err := json.Unmarshal(got.Value, &value); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(c.result.Sandbox, value.Sandbox); diff != "" {
			t.Errorf("%s: sandbox (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestASandboxThatIsNotThereHasACode(t *testing.T) {
	broken := &sandbox.UnavailableError{Mode: sandbox.ReadOnly, Reason: "bwrap: no"}
	sh := &fakeShell{mode: sandbox.ReadOnly, run: func(context.Context, shell.Spec) (shell.Result, error) { return shell.Result{}, broken }}
	got := confining(t, sh, &fixedPolicies{mode: sandbox.ReadOnly}, nil).Execute(t.Context(), with("x"))
	wantError(t, got, "SANDBOX_UNAVAILABLE", broken.Error())
}

func TestDirectoriesAreLookedForInsideOfTheSandbox(t *testing.T) {
	missing := errors.New("it is not visible inside of the sandbox")
	sh := &fakeShell{mode: sandbox.ReadOnly, run: func(_ context.Context, s shell.Spec) (shell.Result, error) {
		return shell.Result{}, &subprocess.DirError{Dir: s.Workdir, Err: missing}
	}}
	r := confining(t, sh, &fixedPolicies{mode: sandbox.ReadOnly}, nil)
	wantError(t, r.Execute(t.Context(), with("x", "workdir", "sub")), tools.CodeWorkdir,
		`working directory "/the/workspace/sub" cannot be used: it is not visible inside of the sandbox`)
	sh.run = nil
	if got := r.Execute(t.Context(), with("x", "workdir", "/nonexistent-here")); got.Error != nil {
		t.Errorf("got %+v, want that the executor decides", got.Error)
	}
}
