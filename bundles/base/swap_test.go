package base_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"dsh/bundles/base"
	"dsh/compose"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/approval"
	"dsh/modules/jobs"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/shell/shelltest"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/tools"
)

// Swaps as a deployment writes them: the second runtime, which confines nothing; bash-local for bash-sandbox; and back.
const (
	plain = `
- id: subprocess
  disabled: true
- insert:
    - {id: subprocess-plain, name: subprocess-plain}
`
	unconfined = `
- id: bash-sandbox
  disabled: true
- id: bash-local
  disabled: false
`
	confined = `
- id: bash-local
  disabled: true
- id: bash-sandbox
  disabled: false
`
)

func plainBundle() module.Bundle {
	return module.Bundle{Name: "plain", Modules: []module.Module{subprocesstest.Module()}}
}

func TestTheShellKeepsItsPromisesInTheComposition(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	testkit.NeedProgram(t, "bwrap")
	for _, c := range []struct {
		name    string
		options []composetest.Option
		shelltest.Options
	}{
		{
			"bash-sandbox",
			[]composetest.Option{composetest.With(base.Bundle())},
			shelltest.Options{Ranges: true, StatusOfSignals: true},
		},
		{
			"bash-local",
			[]composetest.Option{composetest.With(base.Bundle()), composetest.Patch(unconfined)},
			shelltest.Options{Ranges: true},
		},
		{
			"bash-sandbox again",
			[]composetest.Option{composetest.With(base.Bundle()), composetest.Patch(unconfined), composetest.Patch(confined)},
			shelltest.Options{Ranges: true, StatusOfSignals: true},
		},
		{
			"bash-local over another runtime",
			[]composetest.Option{
				composetest.With(base.Bundle(), plainBundle()), composetest.Patch(unconfined), composetest.Patch(plain),
			},
			shelltest.Options{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			// One workspace for all, which directories of the tests are made in.
			workspace := t.TempDir()
			c.options = append(c.options, composetest.Set("sandbox-policy.workspaceRoot="+workspace))
			c.Dir = func(t testing.TB) string {
				dir, err := os.MkdirTemp(workspace, "")
				if err != nil {
					t.Fatal(err)
				}
				return dir
			}
			shelltest.Run(t, func(t testing.TB) shell.Executor {
				return composetest.Value[shell.Executor](t, composetest.Start(t, c.options...))
			}, c.Options)
		})
	}
}

func TestTheBundleIsAlsoOneFxApp(t *testing.T) {
	composetest.PlainFx(t, composetest.With(base.Bundle()))
}

// noConfig is the configuration of the modules that tests put in a row's place.
type noConfig struct{}

func stand(name string, constructor any) module.Module {
	return module.Define(module.Spec[noConfig]{Name: name, Summary: "stands in for another", Constructor: constructor})
}

// echo runs no command: it answers with the command's text and what facts it was given.
type echo struct{ shell.Executor }

func (echo) Mode() (sandbox.Mode, bool) { return "", false }

func (echo) Resolve(r shell.Request) (shell.Spec, error) {
	return shell.Spec{Command: r.Command, Workdir: "/", Facts: r.Facts}, nil
}

func (echo) Run(_ context.Context, s shell.Spec) (shell.Result, error) {
	code := 0
	return shell.Result{ExitCode: &code, Stdout: shell.Output{Text: s.Command + " " + s.Facts["DSH_SHELL"]}, Range: "none"}, nil
}

// facts knows one fact.
type facts struct{ shell.Facts }

func (facts) Collect(context.Context, shell.Execution) (map[string]string, error) {
	return map[string]string{"DSH_SHELL": "swapped"}, nil
}

// refusing is a registry that takes tools and refuses calls.
type refusing struct{ tools.Registry }

func (refusing) Register(tools.Definition) (func(), error) { return func() {}, nil }

func (refusing) BeforeExecute(tools.BeforeHook) func() { return func() {} }

func (refusing) AfterExecute(tools.AfterHook) func() { return func() {} }

func (refusing) Execute(context.Context, tools.Execution) tools.Result {
	return tools.Result{Content: "swapped"}
}

// closed confines nothing.
type closed struct{ sandbox.Provider }

func (closed) Confine(_ context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	return nil, &sandbox.UnavailableError{Mode: r.Policy.Mode, Reason: "swapped"}
}

// open is a policy that lets every command do everything.
type open struct{ sandbox.Policies }

func (open) Default() sandbox.Mode { return sandbox.DangerFullAccess }

func (open) Resolve(context.Context, sandbox.Session, sandbox.Mode) (sandbox.Policy, error) {
	return sandbox.Policy{Mode: sandbox.DangerFullAccess, WorkspaceRoot: "/"}, nil
}

// granting says yes to everything.
type granting struct{}

func (granting) Ask(context.Context, approval.Request) approval.Outcome { return approval.AllowedOnce }

// idle is a registry of jobs that admits none.
type idle struct{ jobs.Registry }

func (idle) Control() func() { return func() {} }

func (idle) Start(context.Context, jobs.Spec) (jobs.Snapshot, error) {
	return jobs.Snapshot{}, errors.New("swapped")
}

func TestEachProviderCanBeSwapped(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	testkit.NeedProgram(t, "bwrap")
	const readOnly = `
- id: sandbox-policy
  config: {mode: read-only}
`
	greet := map[string]any{"command": `echo hi "$DSH_SHELL"`}
	swapped := map[string]bool{}
	for _, c := range []struct {
		name, row string
		module    module.Module
		patch     string
		tool      string
		arguments map[string]any
		want      string // the content of the result
	}{
		{"the runtime", "subprocess", subprocesstest.Module(), unconfined, "bash", greet, "hi 1"},
		{"the executor", "bash-sandbox", stand("echo", func() shell.Executor { return echo{} }), "", "bash", greet, `echo hi "$DSH_SHELL" 1`},
		{"the other executor", "bash-local", stand("echo", func() shell.Executor { return echo{} }), unconfined, "bash", greet, `echo hi "$DSH_SHELL" 1`},
		{"the facts", "shell-env", stand("facts", func() shell.Facts { return facts{} }), "", "bash", greet, "hi swapped"},
		{"the registry", "tools", stand("refusing", func() tools.Registry { return refusing{} }), "", "bash", greet, "swapped"},
		{"the tool", "tool-bash", stand("no-tool", func() module.Runner { return module.Runner{} }), "", "bash", greet, `unknown tool "bash"`},
		{"the sandbox", "sandbox", stand("closed", func() sandbox.Provider { return closed{} }), "", "bash", greet, "swapped"},
		{
			"the policy", "sandbox-policy", stand("open", func() sandbox.Policies { return open{} }), "", "bash",
			map[string]any{"command": "unshare --mount mount --bind /tmp /mnt && echo not confined"},
			"not confined",
		},
		{
			"the approval", "approval", stand("granting", func() approval.Service { return granting{} }), readOnly, "bash",
			map[string]any{
				"command":             "echo >made && echo made it",
				"sandbox_permissions": "workspace-write", "justification": "to swap",
			},
			"made it",
		},
		{
			"the jobs", "jobs", stand("idle", func() jobs.Registry { return idle{} }), "", "bash",
			map[string]any{"command": "true", "run_in_background": true},
			"swapped",
		},
		{"the tools of jobs", "tool-jobs", stand("no-tools", func() module.Runner { return module.Runner{} }), "", "job_list", nil, `unknown tool "job_list"`},
	} {
		swapped[c.row] = true
		t.Run(c.name, func(t *testing.T) {
			registry := composetest.Value[tools.Registry](t, composetest.Start(t,
				composetest.With(base.Bundle()), composetest.Patch(c.patch), composetest.Replace(c.row, c.module)))
			if c.arguments != nil {
				c.arguments["description"] = "test"
			}
			arguments, err := json.Marshal(c.arguments)
			if err != nil {
				t.Fatal(err)
			}
			r := registry.Execute(t.Context(), tools.Execution{
				CallID: "test", Name: c.tool, Arguments: arguments, Session: &tools.SessionRef{ID: "swap", CWD: t.TempDir()},
			})
			if got := r.Content; !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
	for _, id := range composetest.MustPlan(t, composetest.With(base.Bundle())).Rows().IDs() {
		if !swapped[id] {
			t.Errorf("the row %s is not swapped here", id)
		}
	}
}

// TestAStartThatGoesWrongLeavesNoProcess has a row start commands of its own and then fail to start.
func TestAStartThatGoesWrongLeavesNoProcess(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	for _, c := range []struct {
		name, duration string
		start          func(context.Context) error
	}{
		{"an error", "30414", func(context.Context) error { return errors.New("broken") }},
		{"a panic", "30415", func(context.Context) error { panic("broken") }},
		{"an overrun", "30416", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ran := 0
			broken := module.Define(module.Spec[noConfig]{
				Name: "broken", StartWithin: module.DefaultBudget / 10,
				Constructor: func(s shell.Executor) module.Runner {
					return module.Runner{Start: func(ctx context.Context) error {
						spec, err := s.Resolve(shell.Request{Command: "sleep " + c.duration + " & setsid sleep " + c.duration + " & echo up; wait"})
						if err != nil {
							return err
						}
						p, err := s.Start(context.Background(), spec)
						if err != nil {
							return err
						}
						testkit.Eventually(t, 10*time.Second, "the command is up", func() bool { return p.ReadOutput().Stdout != "" })
						ran = len(testkit.Processes("sleep", c.duration))
						return c.start(ctx)
					}}
				},
			})
			plan := composetest.MustPlan(t, composetest.With(base.Bundle(), module.Bundle{
				Name: "broken", Modules: []module.Module{broken}, Patch: []byte("- insert: [{id: broken, name: broken}]"),
			}), composetest.Patch(unconfined))
			running, err := compose.Apply(t.Context(), plan, compose.RunOptions{})
			if err == nil {
				_ = running.Stop()
				t.Fatal("the row started")
			}
			if left := testkit.Processes("sleep", c.duration); ran == 0 || len(left) > 0 {
				t.Errorf("%d ran, and these are left: %v; the start said: %v", ran, left, err)
			}
		})
	}
}

// TestAStopThatGoesWrongLeavesNoProcess has a row above the runtime fail to stop while commands run.
func TestAStopThatGoesWrongLeavesNoProcess(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	for _, c := range []struct {
		name, duration string
		stop           func(context.Context) error
	}{
		{"an error", "30411", func(context.Context) error { return errors.New("broken") }},
		{"a panic", "30412", func(context.Context) error { panic("broken") }},
		{"an overrun", "30413", func(context.Context) error { <-released; return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			broken := module.Define(module.Spec[noConfig]{
				Name: "broken", StopWithin: module.DefaultBudget / 10,
				Constructor: func(tools.Registry) module.Runner { return module.Runner{Stop: c.stop} },
			})
			plan := composetest.MustPlan(t, composetest.With(base.Bundle(), module.Bundle{
				Name: "broken", Modules: []module.Module{broken}, Patch: []byte("- insert: [{id: broken, name: broken}]"),
			}))
			running, err := compose.Apply(t.Context(), plan, compose.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = running.Stop() })
			registry := composetest.Value[tools.Registry](t, running)
			command := "sleep " + c.duration + " & setsid sleep " + c.duration + " & echo up"
			if r, err := call(t.Context(), t, registry, command); err != nil || r.Survivors != 2 {
				t.Fatalf("got %+v, %v", r, err)
			}
			err = running.Stop()
			if err == nil {
				t.Error("the stop went well")
			}
			if left := testkit.Processes("sleep", c.duration); len(left) > 0 {
				t.Errorf("left: %v; the stop said: %v", left, err)
			}
		})
	}
}
