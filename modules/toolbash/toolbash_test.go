package toolbash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

func TestParametersAsAdvertised(t *testing.T) {
	document, err := json.Marshal(definition(t).Parameters)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range definition(t).Parameters.Properties {
		names = append(names, p.Name+" "+p.Schema.Type)
		if p.Schema.Description == "" {
			t.Errorf("%s has no description", p.Name)
		}
	}
	want := []string{"command string", "description string", "timeoutMs number", "workdir string"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if s := string(document); !strings.Contains(s, `"required":["command","description"]`) || strings.Contains(s, "additionalProperties") {
		t.Errorf("got %s, want an open object with two required members", s)
	}
	const none = "Background execution is not available; long-running commands must finish within the timeout."
	if !strings.Contains(definition(t).Description, none) {
		t.Errorf("the description does not say %q", none)
	}
}

func TestArgumentsThatCannotWork(t *testing.T) {
	for _, c := range []struct {
		name string
		call tools.Execution
		want string
	}{
		{"no command", tools.Execution{Name: "bash", Arguments: json.RawMessage(`{"description":"x"}`)}, `invalid arguments: missing required property "command"`},
		{"no description", tools.Execution{Name: "bash", Arguments: json.RawMessage(`{"command":"x"}`)}, `invalid arguments: missing required property "description"`},
		{"blank command", with(" \n\t"), "invalid command: expected a non-empty string"},
		{"blank description", with("x", "description", " "), "invalid description: expected a non-empty string"},
		{"timeout 0", with("x", "timeoutMs", 0), "invalid timeoutMs: expected a positive integer, got 0"},
		{"timeout below 0", with("x", "timeoutMs", -1), "invalid timeoutMs: expected a positive integer, got -1"},
		{"timeout with a fraction", with("x", "timeoutMs", 1.5), "invalid timeoutMs: expected a positive integer, got 1.5"},
		{"timeout with a fraction that a double drops", with("x", "timeoutMs", json.Number("1000000000.00000000001")), "invalid timeoutMs: expected a positive integer, got 1000000000.00000000001"},
		{"timeout of endless digits", with("x", "timeoutMs", json.Number("1."+strings.Repeat("0", 1000))), "invalid timeoutMs: expected a positive integer, got 1." + strings.Repeat("0", 78) + "..."},
		{"timeout as a string", with("x", "timeoutMs", "5000"), "invalid arguments: timeoutMs: must be a number"},
		{"timeout null", with("x", "timeoutMs", nil), "invalid arguments: timeoutMs: must be a number"},
		{"timeout beyond a double", with("x", "timeoutMs", json.Number("1e400")), "invalid arguments: timeoutMs: must be a finite JSON number"},
		{"NUL in the command", with("echo a\x00b"), "invalid command: it contains a NUL byte"},
		{"NUL in the directory", with("x", "workdir", "/\x00"), "invalid workdir: it contains a NUL byte"},
		{"background without jobs", with("x", "run_in_background", true), "background jobs unavailable: load @deepseek-ai/dsh-jobs and @deepseek-ai/dsh-tool-jobs"},
		{"background as a string", with("x", "run_in_background", "true"), `invalid run_in_background: expected a boolean, got "true"`},
		{"background null", with("x", "run_in_background", nil), `invalid run_in_background: expected a boolean, got null`},
		{"escalation without a sandbox", with("x", "sandbox_permissions", "workspace-write", "justification", "I must."), "sandbox_permissions is not available in this composition (no sandboxing executor to escalate)"},
		{"escalation without a reason", with("x", "sandbox_permissions", "workspace-write"), "invalid escalation: sandbox_permissions requires a justification"},
		{"a reason without escalation", with("x", "justification", "I must."), "invalid escalation: justification is only valid together with sandbox_permissions"},
		{"a blank reason", with("x", "sandbox_permissions", "workspace-write", "justification", " "), "invalid justification: expected a non-empty sentence"},
		{"a reason that is no sentence", with("x", "sandbox_permissions", "workspace-write", "justification", 1), "invalid justification: expected a non-empty sentence, got 1"},
		{"a name in other case is another name", tools.Execution{Name: "bash", Arguments: json.RawMessage(`{"command":"","description":"x","Command":"x"}`)}, "invalid command: expected a non-empty string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := &fakeShell{workdir: "/"}
			wantError(t, withShell(t, sh).Execute(t.Context(), c.call), tools.CodeInvalidArgs, c.want)
			if len(sh.ran) > 0 {
				t.Fatalf("the command ran all the same: %+v", sh.ran)
			}
		})
	}
}

func TestTimeoutAsAStringFromGo(t *testing.T) {
	// A caller that goes around the pipeline meets the same wall.
	_, err := definition(t).Execute(t.Context(), with("x", "timeoutMs", "5000"))
	var coded *tools.Error
	if !errors.As(err, &coded) || *coded != (tools.Error{Code: tools.CodeInvalidArgs, Message: `invalid timeoutMs: expected a positive integer, got "5000"`}) {
		t.Fatalf("got %v", err)
	}
}

func TestBackgroundDisabledByTheDeployment(t *testing.T) {
	r := mounted(t, &fakeShell{workdir: "/"}, fakeFacts{}, toolbash.Config{EnableRunInBackground: false})
	wantError(t, r.Execute(t.Context(), with("x", "run_in_background", true)), tools.CodeInvalidArgs,
		"run_in_background is disabled for this deployment (enableRunInBackground: false)")
	if got := r.Execute(t.Context(), with("x", "run_in_background", false)); got.Error != nil {
		t.Fatalf("false is no request for it: got %v", got.Error)
	}
}

func TestTimeoutIsHandedOver(t *testing.T) {
	for literal, want := range map[string]time.Duration{
		"5000": 5 * time.Second, "5000.0": 5 * time.Second, "5e3": 5 * time.Second, "1": time.Millisecond,
		"99999999999":    99999999999 * time.Millisecond,
		"9223372036855":  9223372036854 * time.Millisecond,
		"10000000000000": 9223372036854 * time.Millisecond,
		"1e300":          9223372036854 * time.Millisecond,
	} {
		sh := &fakeShell{workdir: "/"}
		got := withShell(t, sh).Execute(t.Context(), with("x", "timeoutMs", json.Number(literal)))
		if got.Error != nil || len(sh.ran) != 1 || sh.ran[0].Timeout != want {
			t.Errorf("%s: got %+v, %v, want %v", literal, sh.ran, got.Error, want)
		}
	}
	sh := &fakeShell{workdir: "/"}
	withShell(t, sh).Execute(t.Context(), with("x"))
	if last := sh.resolved[len(sh.resolved)-1]; last.Timeout != nil {
		t.Errorf("without timeoutMs: got %v, want the executor's default", *last.Timeout)
	}
}

func TestWorkdir(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"work/sub", "own/sub"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "work"), filepath.Join(root, "link")); err != nil {
		t.Skipf("symbolic links: %v", err)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, c := range []struct {
		name, session, workdir, want, fault string
	}{
		{"the session's", in("work"), "", in("work"), ""},
		{"the session's as the kernel knows it", in("link"), "", in("work"), ""},
		{"relative", in("link"), "sub", in("work", "sub"), ""},
		{"dots collapse before anything is looked up", in("work"), "nowhere/../sub", in("work", "sub"), ""},
		{"above", in("work"), "..", root, ""},
		{"absolute passes through", in("work"), in("link"), in("link"), ""},
		{"absolute needs no session", in("gone"), in("own"), in("own"), ""},
		{"the executor's own", "", "", in("own"), ""},
		{"relative to the executor's own", "", "sub", in("own", "sub"), ""},
		{"missing", in("work"), "gone", "", fmt.Sprintf("working directory %q does not exist", in("work", "gone"))},
		{"a file", in("work"), "../file", "", fmt.Sprintf("working directory %q is not a directory", in("file"))},
		{"under a file", in("work"), "../file/x", "", fmt.Sprintf("working directory %q is not a directory", in("file", "x"))},
		{"a name of two lines", in("work"), "a\nb", "", fmt.Sprintf("working directory %q does not exist", in("work", "a\nb"))},
		{"the session's is gone", in("gone"), "sub", "", fmt.Sprintf("working directory %q does not exist", in("gone"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := &fakeShell{workdir: in("own")}
			e := with("x", "workdir", c.workdir)
			if c.session != "" {
				e.Session = &tools.SessionRef{ID: "session-1", CWD: c.session}
			}
			got := withShell(t, sh).Execute(t.Context(), e)
			if c.fault != "" {
				wantError(t, got, tools.CodeWorkdir, c.fault)
				if len(sh.ran) > 0 {
					t.Fatal("the command ran all the same")
				}
				return
			}
			if got.Error != nil || len(sh.ran) != 1 || sh.ran[0].Workdir != c.want {
				t.Fatalf("got %+v, %v, want %s", sh.ran, got.Error, c.want)
			}
		})
	}
}

func TestEndlessWorkdirIsNotRepeated(t *testing.T) {
	got := withShell(t, &fakeShell{workdir: "/"}).Execute(t.Context(), with("x", "workdir", strings.Repeat("x", 1<<20)))
	if got.Error == nil || got.Error.Code != tools.CodeWorkdir || len(got.Content) > 5000 {
		t.Fatalf("got %d bytes, error %.100v", len(got.Content), got.Error)
	}
}

func TestWorkdirIsTheHostsWhereNobodyNamesOne(t *testing.T) {
	t.Chdir(t.TempDir())
	want, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sh := &fakeShell{}
	if got := withShell(t, sh).Execute(t.Context(), with("x")); got.Error != nil || sh.ran[0].Workdir != want {
		t.Fatalf("got %+v, %v, want %s", sh.ran, got.Error, want)
	}
}

func TestWhatTheExecutorIsHanded(t *testing.T) {
	var streams []string
	sh := &fakeShell{workdir: "/", run: func(_ context.Context, s shell.Spec) (shell.Result, error) {
		s.Progress(shell.Stdout, []byte("out"))
		s.Progress(shell.Stderr, []byte("err"))
		return exited(0), nil
	}}
	e := with("echo")
	e.Session = &tools.SessionRef{ID: "session-1", CWD: "/"}
	e.Stdin = strings.NewReader("in")
	e.Progress = func(stream string, p []byte) { streams = append(streams, stream+":"+string(p)) }
	if got := withShell(t, sh).Execute(t.Context(), e); got.Error != nil {
		t.Fatal(got.Error)
	}
	s := sh.ran[0]
	if s.Command != "echo" || s.Stdin != e.Stdin || s.Facts["DSH_SESSION_ID"] != "session-1" {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"stdout:out", "stderr:err"}, streams); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestValueIsTheResultInItsOrder(t *testing.T) {
	for want, result := range map[string]shell.Result{
		`{"kind":"foreground","exitCode":0,"signal":null,"timedOut":false,"aborted":false,"timeoutMs":120000,` +
			`"stdout":{"text":"<hi>\n","truncated":false,"bytes":5},"stderr":{"text":"","truncated":false,"bytes":0},` +
			`"survivors":0,"range":"group","durationMs":7}`: func() shell.Result {
			r := exited(0)
			r.Stdout, r.DurationMs = shell.Output{Text: "<hi>\n", Bytes: 5}, 7
			return r
		}(),
		`{"kind":"foreground","exitCode":null,"signal":"SIGKILL","timedOut":true,"aborted":false,"timeoutMs":500,` +
			`"stdout":{"text":"","truncated":true,"spillPath":"/t/f","bytes":9},"stderr":{"text":"","truncated":false,"bytes":0},` +
			`"survivors":2,"range":"group","durationMs":0,"timeoutClamped":true}`: func() shell.Result {
			r := killed("SIGKILL")
			r.TimedOut, r.Survivors, r.TimeoutClamped = true, 2, true
			r.Stdout = shell.Output{Truncated: true, SpillPath: "/t/f", Bytes: 9}
			return r
		}(),
	} {
		sh := &fakeShell{workdir: "/", run: func(context.Context, shell.Spec) (shell.Result, error) { return result, nil }}
		got := withShell(t, sh).Execute(t.Context(), with("x"))
		if diff := cmp.Diff(want, string(got.Value)); diff != "" || got.Error != nil {
			t.Errorf("%v (-want +got):\n%s", got.Error, diff)
		}
	}
}

func TestOutputSchemaIsStrict(t *testing.T) {
	const foreground = `{"kind":"foreground","exitCode":0,"signal":null,"timedOut":false,"aborted":false,"timeoutMs":1,` +
		`"stdout":{"text":"","truncated":false,"bytes":0},"stderr":{"text":"","truncated":false,"bytes":0},` +
		`"survivors":0,"range":"group","durationMs":7}`
	schema := definition(t).Output
	for name, c := range map[string]struct {
		value string
		valid bool
	}{
		"foreground":       {foreground, true},
		"background":       {`{"kind":"background","jobId":"bash-1"}`, true},
		"neither":          {`{"kind":"promoted","jobId":"bash-1"}`, false},
		"both":             {strings.Replace(foreground, `"foreground"`, `"foreground","jobId":"bash-1"`, 1), false},
		"something more":   {strings.Replace(foreground, `"bytes":0`, `"bytes":0,"lines":0`, 1), false},
		"something less":   {strings.Replace(foreground, `"survivors":0,`, ``, 1), false},
		"something else":   {strings.Replace(foreground, `"exitCode":0`, `"exitCode":"0"`, 1), false},
		"a half exit code": {strings.Replace(foreground, `"exitCode":0`, `"exitCode":0.5`, 1), false},
	} {
		value, err := tools.Decode(json.RawMessage(c.value))
		if err != nil {
			t.Fatal(err)
		}
		if got := schema.Violations(value); (got == nil) != c.valid {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestErrorsOfTheLayersBelow(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name       string
		facts, run error
		result     shell.Result
		code, want string
	}{
		{"facts", boom, nil, exited(0), tools.CodeInternal, "boom"},
		{"not started", nil, boom, exited(0), tools.CodeInternal, "boom"},
		{"aborted", nil, nil, shell.Result{Aborted: true}, tools.CodeAborted, "tool call aborted"},
		{
			"too long", nil, fmt.Errorf("%w: 200000 bytes, limit 131071", shell.ErrCommandTooLong), exited(0), tools.CodeInvalidArgs,
			"command too long: 200000 bytes, limit 131071",
		},
		{
			"the directory went away", nil, fmt.Errorf("spawn: %w", &subprocess.DirError{Dir: "/w", Err: os.ErrNotExist}), exited(0),
			tools.CodeWorkdir, `working directory "/w" does not exist`,
		},
		{
			"the directory is closed to us", nil, &subprocess.DirError{Dir: "/w", Err: os.ErrPermission}, exited(0),
			tools.CodeWorkdir, `working directory "/w" cannot be used: permission denied`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := &fakeShell{workdir: "/", run: func(context.Context, shell.Spec) (shell.Result, error) { return c.result, c.run }}
			r := mounted(t, sh, fakeFacts{err: c.facts}, toolbash.DefaultConfig())
			wantError(t, r.Execute(t.Context(), with("x")), c.code, c.want)
		})
	}
}

func TestStartFailsWhereTheNameIsTaken(t *testing.T) {
	r := withShell(t, &fakeShell{})
	second := toolbash.New(toolbash.Params{Config: toolbash.DefaultConfig(), Tools: r, Shell: &fakeShell{}, Facts: fakeFacts{}}).Runner
	if err := second.Start(t.Context()); err == nil {
		t.Fatal("a second tool called bash was registered")
	}
	if err := second.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Definitions()); n != 1 {
		t.Fatalf("the tool that did not start took the other away: %d left", n)
	}
}

func TestModuleInAnApp(t *testing.T) {
	registry := toolslocal.Module()
	var r tools.Registry
	app := fx.New(
		fx.NopLogger,
		fx.Supply(slog.New(slog.DiscardHandler)),
		fx.Provide(func() shell.Executor { return &fakeShell{workdir: "/"} }, func() shell.Facts { return fakeFacts{} }),
		module.Fx(registry, registry.DefaultConfig()),
		module.Fx(toolbash.Module(), toolbash.Module().DefaultConfig()),
		fx.Populate(&r),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Execute(t.Context(), with("x")); got.Error != nil {
		t.Error(got.Error)
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Definitions()); n != 0 {
		t.Fatalf("after the stop %d tools are left", n)
	}
}
