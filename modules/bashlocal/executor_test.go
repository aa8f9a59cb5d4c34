package bashlocal_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/bashlocal"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/subprocesslocal"
)

func TestModule(t *testing.T) {
	t.Parallel()
	m := bashlocal.Module()
	if m.Name() != "bash-local" || len(m.Provides()) != 1 || len(m.Needs()) != 1 || m.Supports("win32") || !m.Supports("linux") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
	if err := m.Validate(m.DefaultConfig()); err != nil {
		t.Errorf("the defaults do not validate: %v", err)
	}
}

func TestAConfigThatCannotWorkIsTaken(t *testing.T) {
	t.Parallel()
	err := bashlocal.Config{Cwd: "here", TimeoutMs: -1, MaxTimeoutMs: 1 << 60, GraceMs: 1 << 31, Survivors: "keep", PidsMax: -2, CPUMax: math.NaN()}.Validate()
	for _, want := range []string{
		`cwd must be an absolute path, got "here"`,
		"timeoutMs must be positive, got -1",
		"maxTimeoutMs must be at most 9223372036854, got 1152921504606846976",
		"maxOutputBytes must be positive, got 0",
		"maxSpillBytes must be positive, got 0",
		"graceMs must be at most 2147483647, got 2147483648",
		`survivors must be report or terminate, got "keep"`,
		"pidsMax must not be negative, got -2",
		"cpuMax must not be negative, got NaN",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
	c := bashlocal.DefaultConfig()
	c.TimeoutMs = 700_000
	if err := c.Validate(); err == nil || err.Error() != "timeoutMs must be at most maxTimeoutMs, which is 600000, got 700000" {
		t.Errorf("a default over the cap: %v", err)
	}
	if _, ok := errors.AsType[*module.FieldError](err); !ok {
		t.Errorf("%T holds no *module.FieldError", err)
	}
}

// TestALimitIsIgnored asks for limits that nothing here can hold a command to: process groups have none.
func TestALimitIsIgnored(t *testing.T) {
	r, err := subprocesslocal.New(subprocesslocal.Params{
		Config: subprocesslocal.Config{Range: "group"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Runner.Stop(context.Background()) })
	plain := subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)}).Runtime
	for want, rt := range map[string]subprocess.Runtime{
		"memoryMax cannot be enforced: commands can be limited only in cgroups of their own": r.Runtime,
		"memoryMax cannot be enforced: this runtime knows no limits":                         plain,
	} {
		c := bashlocal.DefaultConfig()
		c.MemoryMax = 1 << 30
		x, err := bashlocal.New(bashlocal.Params{Config: c, Runtime: rt})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Run.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start: error %v, want %q", err, want)
		}
	}
}

func TestARowStartsWithoutBash(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	x, err := bashlocal.New(bashlocal.Params{Config: bashlocal.DefaultConfig(), Runtime: runtime(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = x.Run.Start(t.Context())
	if _, ok := errors.AsType[*subprocess.ExecutableError](err); !ok || err.Error() != `commands need bash: executable "bash" was not found on PATH` {
		t.Errorf("start: error %v, want one that bash is missing", err)
	}
	spec, err := x.Executor.Resolve(shell.Request{Command: "true", Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Executor.Run(t.Context(), spec); err == nil {
		t.Error("a row that has not started ran a command")
	}
}

func TestDefaultsAreNotTheConfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := started(t, runtime(t), func(c *bashlocal.Config) { c.Cwd, c.TimeoutMs, c.MaxTimeoutMs, c.MaxOutputBytes = dir, 4000, 5000, 10 })
	spec, err := x.Resolve(shell.Request{Command: "printf 0123456789abcdef; printf 0123456789abcdef >&2"})
	if err != nil {
		t.Fatal(err)
	}
	if spec.Workdir != dir || spec.Timeout != 4*time.Second || spec.TimeoutClamped || spec.StdoutMaxBytes != 10 {
		t.Errorf("resolved to %+v", spec)
	}
	long := 6 * time.Second
	if spec, err := x.Resolve(shell.Request{Command: "true", Timeout: &long}); err != nil || spec.Timeout != 5*time.Second || !spec.TimeoutClamped {
		t.Errorf("6 s resolved to %+v, %v", spec, err)
	}
	spec.StdoutMaxBytes = 12
	r, err := x.Run(t.Context(), spec)
	if err != nil || r.Stdout.Text != "456789abcdef" || r.Stderr.Text != "6789abcdef" {
		t.Errorf("stdout %q, stderr %q, error %v", r.Stdout.Text, r.Stderr.Text, err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if spec, err := started(t, runtime(t), nil).Resolve(shell.Request{Command: "true"}); err != nil || spec.Workdir != wd {
		t.Errorf("without cwd resolved to %+v, %v", spec, err)
	}
}

func TestTheLimitOfACommandsLengthIsOffByOne(t *testing.T) {
	t.Parallel()
	x := started(t, runtime(t), nil)
	command := func(n int) string { return "echo ok #" + strings.Repeat("x", n-len("echo ok #")) }
	for _, n := range []int{131_071, 131_072, 240_000, 240_001, 1 << 20} {
		wantOutput(t, run(t, x, shell.Request{Command: command(n), Workdir: t.TempDir()}), 0, "ok\n")
	}
	_, err := x.Resolve(shell.Request{Command: command(1<<20 + 1)})
	if !errors.Is(err, shell.ErrCommandTooLong) || !strings.Contains(err.Error(), "command is 1048577 bytes, limit 1048576") {
		t.Errorf("one byte over 1 MiB: error %v", err)
	}
}

func TestACommandThatBeginsWithADashIsAnOption(t *testing.T) {
	t.Parallel()
	x := started(t, runtime(t), nil)
	for _, command := range []string{"-x", "+x", "-c", "-x #" + strings.Repeat("y", 200_000)} {
		r := run(t, x, shell.Request{Command: command, Workdir: t.TempDir()})
		want := "bash: line 1: " + command[:2] + ": command not found\n"
		if r.ExitCode == nil || *r.ExitCode != 127 || r.Stderr.Text != want {
			t.Errorf("%.5q: exit code %v, stderr %q, want 127, %q", command, r.ExitCode, r.Stderr.Text, want)
		}
	}
}

func TestNoFileHoldsTheWholeOutput(t *testing.T) {
	t.Parallel()
	x := started(t, runtime(t), func(c *bashlocal.Config) { c.MaxSpillBytes = 100_000 })
	r := run(t, x, shell.Request{Command: "seq 10000; seq 30000 >&2", StdoutMaxBytes: 1000, Workdir: t.TempDir()})
	whole, err := os.ReadFile(r.Stdout.SpillPath)
	if err != nil || len(whole) != 48_894 || !strings.HasSuffix(string(whole), r.Stdout.Text) {
		t.Errorf("the spill of stdout has %d bytes, error %v, want 48894", len(whole), err)
	}
	if !r.Stderr.Truncated || r.Stderr.SpillPath != "" || r.Stderr.Bytes != 168_894 {
		t.Errorf("stderr over maxSpillBytes: truncated %v, spill %q, %d bytes", r.Stderr.Truncated, r.Stderr.SpillPath, r.Stderr.Bytes)
	}
}

func TestSurvivorsAreNotTerminated(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"auto", "group"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := subprocesslocal.DefaultConfig()
			c.Range = kind
			endsSurvivors(t, runtimeWith(t, c))
		})
	}
}

// endsSurvivors has an executor end what goes on when its command has settled.
func endsSurvivors(t *testing.T, rt subprocess.Runtime) {
	t.Helper()
	x := started(t, rt, func(c *bashlocal.Config) { c.Survivors, c.GraceMs = "terminate", 500 })
	for _, command := range []string{
		"sleep 4201 >/dev/null 2>&1 & echo $!",
		"setsid sleep 4202 >/dev/null 2>&1 & echo $!",
		"(trap '' TERM; exec sleep 4203) >/dev/null 2>&1 & echo $!", // only KILL ends it
	} {
		got := run(t, x, shell.Request{Command: command, Workdir: t.TempDir()})
		if got.Survivors != 0 || got.TimedOut || got.Aborted || got.ExitCode == nil || *got.ExitCode != 0 {
			t.Errorf("%s: %+v", command, got)
		}
		wantGone(t, strings.TrimSpace(got.Stdout.Text))
	}
	spec, err := x.Resolve(shell.Request{Command: "sleep 4204 >/dev/null 2>&1 & echo $!", Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := x.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Errorf("a started command's survivor: %v", err)
	}
	<-p.Done()
	wantGone(t, strings.TrimSpace(p.ReadOutput().Stdout))
}

func TestSurvivorsAreNotReported(t *testing.T) {
	t.Parallel()
	x := started(t, runtime(t), nil)
	r := run(t, x, shell.Request{Command: "sleep 4205 >/dev/null 2>&1 & setsid sleep 4206 >/dev/null 2>&1 & echo hi", Workdir: t.TempDir()})
	if r.Survivors != 2 || r.Range == "" {
		t.Errorf("%d survivors in a range of kind %q, want 2", r.Survivors, r.Range)
	}
}

// wantGone fails if the process with this id is there.
func wantGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		t.Fatalf("no process id: %q", pid)
	}
	p, err := os.FindProcess(n)
	if err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Errorf("process %d is still there", n)
	}
}

func TestAReloadEndsStartedCommands(t *testing.T) {
	t.Parallel()
	r := runtime(t)
	m, err := bashlocal.New(bashlocal.Params{Config: bashlocal.DefaultConfig(), Runtime: r})
	if err != nil {
		t.Fatal(err)
	}
	row, stop := context.WithCancel(t.Context())
	if err := m.Run.Start(row); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spec, err := m.Executor.Resolve(shell.Request{Command: "until [ -e go ]; do sleep 0.02; done; echo done", Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Executor.Start(row, spec)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if m.Run.Stop != nil {
		if err := m.Run.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, "the command completes", func() bool { return p.Status().State == shell.Completed })
	if d := p.ReadOutput(); d.Stdout != "done\n" {
		t.Errorf("stdout %q, want done", d.Stdout)
	}
}
