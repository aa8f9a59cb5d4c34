package bashexec_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/internal/bashexec"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/shell/shelltest"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// located returns an executor over a plain runtime that is stopped at the end of the test.
func located(tb testing.TB) *bashexec.Executor {
	tb.Helper()
	r := subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)})
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Runner.Stop(ctx); err != nil {
			tb.Errorf("stop of the runtime: %v", err)
		}
	})
	c := bashexec.DefaultConfig()
	c.GraceMs = 1500 // what this runtime costs whenever a survivor holds the output
	e := bashexec.New(r.Runtime, c)
	if err := e.Locate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return e
}

// prepared is an executor with the same preparation for all commands.
type prepared struct {
	*bashexec.Executor
	prepare bashexec.Prepare
}

func (p prepared) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	return p.Executor.Run(ctx, s, p.prepare)
}

func (p prepared) Start(ctx context.Context, s shell.Spec) (shell.Process, error) {
	return p.Executor.Start(ctx, s, p.prepare)
}

func (prepared) Mode() (sandbox.Mode, bool) { return "", false }

func TestConformanceUnprepared(t *testing.T) {
	t.Parallel()
	shelltest.Run(t, func(tb testing.TB) shell.Executor { return prepared{located(tb), nil} }, shelltest.Options{})
}

func TestARunnerIsLeftOut(t *testing.T) {
	t.Parallel()
	// A shell that becomes the command's: like any runner, it takes the whole argv.
	x := prepared{located(t), func(_ context.Context, s *subprocess.Spec) error {
		s.Argv = append([]string{"runner", "-c", `export BEHIND=$0; exec -a bash "$@"`, "a-runner", s.Path}, s.Argv[1:]...)
		return nil
	}}
	spec := shell.Spec{Command: "echo $BEHIND; no_such_program", Workdir: t.TempDir(), Timeout: time.Minute, StdoutMaxBytes: 100}
	const stdout, stderr = "a-runner\n", "bash: line 1: no_such_program: command not found\n"
	if r, err := x.Run(t.Context(), spec); err != nil || r.Stdout.Text != stdout || r.Stderr.Text != stderr {
		t.Errorf("Run: stdout %q, stderr %q, error %v", r.Stdout.Text, r.Stderr.Text, err)
	}
	p, err := x.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if d := p.ReadOutput(); d.Stdout != stdout || d.Stderr != stderr {
		t.Errorf("Start: stdout %q, stderr %q", d.Stdout, d.Stderr)
	}
}

func TestPreparationIsOutsideOfTheDeadline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := shell.Spec{Command: "touch marker", Workdir: dir, Timeout: 50 * time.Millisecond, StdoutMaxBytes: 100}
	broken := errors.New("no sandbox runner works here")
	// A preparation that heeds its context and one that finishes all the same.
	for name, after := range map[string]error{"refuses": broken, "goes on": nil} {
		wait := func(ctx context.Context, _ *subprocess.Spec) error { <-ctx.Done(); return after }
		r, err := located(t).Run(t.Context(), spec, wait)
		if err != nil || !r.TimedOut || r.Aborted || r.ExitCode != nil || r.TimeoutMs != 50 || r.DurationMs < 50 {
			t.Errorf("%s: timed out %v, aborted %v, %d ms, error %v; want a timeout", name, r.TimedOut, r.Aborted, r.DurationMs, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := func(ctx context.Context, s *subprocess.Spec) error { cancel(); return wait(ctx, s) }
		long := spec
		long.Timeout = time.Hour
		r, err = located(t).Run(ctx, long, cancelled)
		if err != nil || r.TimedOut || !r.Aborted || r.ExitCode != nil {
			t.Errorf("%s: timed out %v, aborted %v, error %v; want an abort", name, r.TimedOut, r.Aborted, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "marker")); err == nil {
		t.Error("a command was run that had no time left")
	}
}

func TestABrokenPreparationRunsTheCommandBare(t *testing.T) {
	t.Parallel()
	spec := shell.Spec{Command: "touch marker", Workdir: t.TempDir(), Timeout: time.Minute, StdoutMaxBytes: 100}
	broken := errors.New("no sandbox runner works here")
	refuse := func(context.Context, *subprocess.Spec) error { return broken }
	e := located(t)
	if _, err := e.Run(t.Context(), spec, refuse); !errors.Is(err, broken) {
		t.Errorf("Run: error %v, want the preparation's", err)
	}
	if _, err := e.Start(t.Context(), spec, refuse); !errors.Is(err, broken) {
		t.Errorf("Start: error %v, want the preparation's", err)
	}
	if _, err := os.Stat(filepath.Join(spec.Workdir, "marker")); err == nil {
		t.Error("the command was run all the same")
	}
}

func TestDescriptorsOfAnUnusedPreparationStayOpen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	spec := shell.Spec{Command: "true", Workdir: t.TempDir(), Timeout: time.Minute, StdoutMaxBytes: 100}
	r, err := located(t).Run(ctx, spec, func(_ context.Context, s *subprocess.Spec) error {
		s.ExtraFiles = []*os.File{f}
		cancel()
		return nil
	})
	if err != nil || !r.Aborted {
		t.Errorf("aborted %v, error %v, want an abort", r.Aborted, err)
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closing it again: %v, want that it is closed", err)
	}
}
