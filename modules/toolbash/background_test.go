package toolbash_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dsh/modules/jobs"
	"dsh/modules/jobslocal"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

// startable is fakeShell with commands that can be started.
type startable struct {
	fakeShell
	started []shell.Spec
	start   func(context.Context) (shell.Process, error)
}

func (s *startable) Start(ctx context.Context, spec shell.Spec) (shell.Process, error) {
	s.started = append(s.started, spec)
	return s.start(ctx)
}

// ended is a process that has ended, and said what it had to say.
type ended struct {
	status shell.Status
	delta  shell.Delta
	read   bool
}

func (p *ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (p *ended) Status() shell.Status          { return p.status }
func (p *ended) Kill() bool                    { return false }
func (p *ended) Hurry()                        {}
func (p *ended) Quiesce(context.Context) error { return nil }

func (p *ended) ReadOutput() shell.Delta {
	if p.read {
		return shell.Delta{}
	}
	p.read = true
	return p.delta
}

// policies is a fixed policy.
type policies struct{ sandbox.Policies }

func (policies) Resolve(context.Context, sandbox.Session, sandbox.Mode) (sandbox.Policy, error) {
	return sandbox.Policy{Mode: sandbox.ReadOnly, WorkspaceRoot: "/"}, nil
}

// withJobs is the tool over s with a registry of jobs, which has a controller.
func withJobs(t testing.TB, s shell.Executor, c toolbash.Config) (tools.Registry, jobs.Registry) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	held, err := jobslocal.New(jobslocal.Params{Config: jobslocal.DefaultConfig(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	held.Registry.Control()
	registry := toolslocal.New(toolslocal.Params{Log: log}).Registry
	p := toolbash.Params{Config: c, Tools: registry, Shell: s, Facts: fakeFacts{}, Jobs: held.Registry}
	if _, confines := s.Mode(); confines {
		p.Policies = policies{}
	}
	tool := toolbash.New(p).Runner
	if err := tool.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tool.Stop(context.Background()), held.Runner.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return registry, held.Registry
}

func inSession(e tools.Execution) tools.Execution {
	e.Session = &tools.SessionRef{ID: "session-1", CWD: "/"}
	return e
}

func TestBackgroundIsOfferedWhereItIsPossible(t *testing.T) {
	t.Parallel()
	offered, _ := withJobs(t, &fakeShell{}, toolbash.DefaultConfig())
	disabled, _ := withJobs(t, &fakeShell{}, toolbash.Config{})
	for _, c := range []struct {
		name     string
		registry tools.Registry
		offered  bool
	}{
		{"with jobs", offered, true},
		{"disabled", disabled, false},
		{"without jobs", withShell(t, &fakeShell{}), false},
	} {
		d := c.registry.Definitions()[0]
		parameters, err := json.Marshal(d.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(d.Description, "run_in_background") && strings.Contains(d.Description, "job_output")
		denied := strings.Contains(d.Description, "Background execution is not available; long-running commands must finish within the timeout.")
		if parameter := strings.Contains(string(parameters), `"run_in_background"`); parameter != c.offered || said != c.offered || denied == c.offered {
			t.Errorf("%s: parameter %v, description offers it %v, and denies it %v", c.name, parameter, said, denied)
		}
	}
	wantError(t, disabled.Execute(t.Context(), with("true", "run_in_background", true)), tools.CodeInvalidArgs,
		"run_in_background is disabled for this deployment (enableRunInBackground: false)")
}

func TestBackgroundHasNoTimeoutAndNoCaller(t *testing.T) {
	t.Parallel()
	code := 0
	s := &startable{start: func(context.Context) (shell.Process, error) {
		return &ended{status: shell.Status{State: shell.Completed, ExitCode: &code}}, nil
	}}
	registry, held := withJobs(t, s, toolbash.DefaultConfig())
	e := inSession(with("make test", "run_in_background", true, "timeoutMs", 5))
	e.Stdin, e.Progress = strings.NewReader("x"), func(string, []byte) {}
	got := registry.Execute(t.Context(), e)
	if got.Content != "started background job bash-1" || string(got.Value) != `{"kind":"background","jobId":"bash-1"}` {
		t.Fatalf("got %q, %s", got.Content, got.Value)
	}
	if len(s.ran) > 0 || len(s.started) != 1 {
		t.Fatalf("%d were run, %d started", len(s.ran), len(s.started))
	}
	spec := s.started[0]
	if r := s.resolved[0]; r.Timeout != nil || spec.Stdin != nil || spec.Progress != nil || spec.Facts["DSH_SESSION_ID"] != "session-1" {
		t.Errorf("resolved %+v", r)
	}
	j, err := held.Find("session-1", "bash-1")
	if err != nil || j.Kind != "bash" || j.Label != "make test" || j.Owner != "session-1" {
		t.Errorf("the job is %+v, %v", j, err)
	}
}

func TestBackgroundThatCannotStartIsNoJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code, message string
		err                 error
	}{
		{"a directory that has gone", tools.CodeWorkdir, `working directory "/no" does not exist`, &subprocess.DirError{Dir: "/no", Err: fs.ErrNotExist}},
		{
			"no sandbox", sandbox.CodeUnavailable, (&sandbox.UnavailableError{Mode: sandbox.ReadOnly, Reason: "gone"}).Error(),
			&sandbox.UnavailableError{Mode: sandbox.ReadOnly, Reason: "gone"},
		},
	} {
		s := &startable{start: func(context.Context) (shell.Process, error) { return nil, c.err }}
		registry, held := withJobs(t, s, toolbash.DefaultConfig())
		wantError(t, registry.Execute(t.Context(), with("true", "run_in_background", true)), c.code, c.message)
		if n := len(held.List("")); n > 0 {
			t.Errorf("%s: %d jobs", c.name, n)
		}
	}
	s := &startable{}
	registry, held := withJobs(t, s, toolbash.DefaultConfig())
	ctx, cancel := context.WithCancel(t.Context())
	s.start = func(ctx context.Context) (shell.Process, error) {
		cancel()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	wantError(t, registry.Execute(ctx, with("true", "run_in_background", true)), tools.CodeAborted, "tool call aborted")
	if n := len(held.List("")); n > 0 {
		t.Errorf("%d jobs of a caller who has gone", n)
	}
}

func TestTextsAndOutcomesOfJobs(t *testing.T) {
	t.Parallel()
	three, term := 3, "SIGTERM"
	denied, failed := &sandbox.Facts{Mode: sandbox.ReadOnly, Denied: true}, &sandbox.Facts{Mode: sandbox.ReadOnly, RunnerFailed: true}
	for _, c := range []struct {
		name    string
		mode    sandbox.Mode
		status  shell.Status
		delta   shell.Delta
		text    string
		outcome jobs.Outcome
	}{
		{
			"both streams", "",
			shell.Status{State: shell.Completed, ExitCode: &three},
			shell.Delta{Stdout: "out", Stderr: "err\n"},
			"out\n[stderr]\nerr\n",
			jobs.Outcome{Status: jobs.Completed, Detail: "exit code: 3"},
		},
		{
			"killed by a signal", "",
			shell.Status{State: shell.Killed, Signal: &term},
			shell.Delta{},
			"",
			jobs.Outcome{Status: jobs.Killed, Detail: "signal: SIGTERM"},
		},
		{
			"killed, and yet an exit", "",
			shell.Status{State: shell.Killed, ExitCode: &three},
			shell.Delta{},
			"",
			jobs.Outcome{Status: jobs.Killed, Detail: "killed before exit"},
		},
		{
			"an end that nobody knows", "",
			shell.Status{State: shell.Killed, Err: errors.New("lost")},
			shell.Delta{},
			"",
			jobs.Outcome{Status: jobs.Failed, Detail: "lost"},
		},
		{
			"output that was dropped", "",
			shell.Status{State: shell.Completed, ExitCode: &three},
			shell.Delta{Stdout: "end", Lossy: true, StdoutSpillPath: "/s/out", StderrSpillPath: "/s/err"},
			"end\n[some output was dropped from memory; full output: /s/out, /s/err]",
			jobs.Outcome{Status: jobs.Completed, Detail: "exit code: 3"},
		},
		{
			"output that is lost", "",
			shell.Status{State: shell.Completed, ExitCode: &three},
			shell.Delta{Lossy: true},
			"[some output was dropped from memory; full output: (unavailable)]",
			jobs.Outcome{Status: jobs.Completed, Detail: "exit code: 3"},
		},
		{
			"a refusal", sandbox.ReadOnly,
			shell.Status{State: shell.Completed, ExitCode: &three, Sandbox: denied},
			shell.Delta{Stderr: "no"},
			"[stderr]\nno\n" + sandbox.DeniedMarker(sandbox.ReadOnly) + "\n" + sandbox.EscalationHint("command"),
			jobs.Outcome{Status: jobs.Completed, Detail: "exit code: 3"},
		},
		{
			"a runner that failed", sandbox.ReadOnly,
			shell.Status{State: shell.Completed, ExitCode: &three, Sandbox: failed},
			shell.Delta{},
			sandbox.RunnerFailedMarker(sandbox.ReadOnly),
			jobs.Outcome{Status: jobs.Completed, Detail: "exit code: 3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &startable{fakeShell: fakeShell{mode: c.mode}, start: func(context.Context) (shell.Process, error) {
				return &ended{status: c.status, delta: c.delta}, nil
			}}
			registry, held := withJobs(t, s, toolbash.DefaultConfig())
			if got := registry.Execute(t.Context(), inSession(with("true", "run_in_background", true))); got.Error != nil {
				t.Fatal(got.Error)
			}
			if j, err := held.Wait(t.Context(), "session-1", "bash-1", 20*time.Second); err != nil || j.Status != c.outcome.Status || j.Detail != c.outcome.Detail {
				t.Errorf("got %s, %q, %v, want %+v", j.Status, j.Detail, err, c.outcome)
			}
			for _, want := range []string{c.text, ""} {
				if r, err := held.Read("session-1", "bash-1"); err != nil || r.Text != want {
					t.Errorf("got %q, %v, want %q", r.Text, err, want)
				}
			}
		})
	}
}

func TestTheLimitOfJobsHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	s := &startable{start: func(context.Context) (shell.Process, error) { return &endless{done: done}, nil }}
	registry, held := withJobs(t, s, toolbash.DefaultConfig())
	defer close(done)
	for range 10 {
		if got := registry.Execute(t.Context(), inSession(with("true", "run_in_background", true))); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	wantError(t, registry.Execute(t.Context(), inSession(with("true", "run_in_background", true))), jobs.CodeLimit,
		(&jobs.LimitError{Limit: 10}).Error())
	if len(s.started) != 10 || len(held.List("session-1")) != 10 {
		t.Errorf("%d were started, %d jobs", len(s.started), len(held.List("session-1")))
	}
}

// endless is a process that ends when its test does.
type endless struct {
	ended
	done chan struct{}
}

func (p *endless) Done() <-chan struct{} { return p.done }

func (p *endless) Status() shell.Status { return shell.Status{State: shell.Running} }

func TestWithoutAControllerNothingIsStarted(t *testing.T) {
	t.Parallel()
	s := &startable{}
	registry := toolslocal.New(toolslocal.Params{Log: slog.New(slog.DiscardHandler)}).Registry
	held, err := jobslocal.New(jobslocal.Params{Config: jobslocal.DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tool := toolbash.New(toolbash.Params{
		Config: toolbash.DefaultConfig(), Tools: registry, Shell: s, Facts: fakeFacts{}, Jobs: held.Registry,
	}).Runner
	if err := tool.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantError(t, registry.Execute(t.Context(), with("true", "run_in_background", true)), tools.CodeInvalidArgs, jobs.ErrNoController.Error())
	if len(s.started) > 0 {
		t.Error("a command was started")
	}
}
