//go:build unix

package subprocesstest

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/subprocess"
)

// Options says what a runtime promises beyond what all do.
type Options struct {
	// Ranges: the runtime owns also what leaves a command's process group, counts survivors, and settles without waiting
	// for a survivor that is idle.
	Ranges bool
}

// NewRuntime returns a runtime that has not started, and what starts and stops it.
type NewRuntime func(t testing.TB) (subprocess.Runtime, module.Runner)

// Run tests a runtime against every promise of package subprocess. It needs bash and the usual tools. Every test has a
// runtime of its own, which is stopped at the end and must then have left nothing.
func Run(t *testing.T, newRuntime NewRuntime, o Options) {
	s := suite{newRuntime, o}
	t.Run("refusals", s.refusals)
	t.Run("executables", s.executables)
	t.Run("environment", s.environment)
	t.Run("inherited streams", s.inherited)
	t.Run("nothing accumulates", s.accumulation)
	t.Run("stdin", s.stdin)
	t.Run("output", s.output)
	t.Run("outcome", s.outcome)
	t.Run("termination", s.termination)
	t.Run("stop", s.stop)
	if o.Ranges {
		t.Run("ranges", s.ranges)
	}
}

type suite struct {
	newRuntime NewRuntime
	Options
}

// patienceVariable exchanges patience, for a machine that is very slow, or a runtime that is to fail.
const patienceVariable = "SUBPROCESSTEST_PATIENCE"

// patience bounds what should be quick, on a machine that may be busy.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(patienceVariable)); err == nil && d > 0 {
		return d
	}
	return 20 * time.Second
}()

// start returns a started runtime, which the end of the test stops.
func (s suite) start(t testing.TB) subprocess.Runtime {
	t.Helper()
	rt, stop := s.startStoppable(t)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return rt
}

// startStoppable is start for a test that stops the runtime itself.
func (s suite) startStoppable(t testing.TB) (rt subprocess.Runtime, stop func() error) {
	t.Helper()
	rt, runner := s.newRuntime(t)
	if runner.Start != nil {
		if err := runner.Start(t.Context()); err != nil {
			t.Fatalf("start: %v", err)
		}
	}
	return rt, func() error {
		if runner.Stop == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return runner.Stop(ctx)
	}
}

// bash returns a Spec that collects both outputs of a command.
func bash(t testing.TB, command string) subprocess.Spec {
	return subprocess.Spec{
		Argv: []string{"bash", "-c", command}, Dir: t.TempDir(), Grace: 3 * time.Second,
		Stdout: collected(), Stderr: collected(),
	}
}

func collected() subprocess.Output {
	return subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 64000, SpillMaxBytes: 64 << 20}}
}

func spawn(t testing.TB, rt subprocess.Runtime, s subprocess.Spec) subprocess.Process {
	t.Helper()
	return spawnIn(t.Context(), t, rt, s)
}

func spawnIn(ctx context.Context, t testing.TB, rt subprocess.Runtime, s subprocess.Spec) subprocess.Process {
	t.Helper()
	// The context lives as long as the process, and a test's own ends before its clean-up stops the runtime.
	p, err := rt.Spawn(ctx, s)
	if err != nil {
		t.Fatalf("spawn %q: %v", s.Argv, err)
	}
	return p
}

// settle waits for p and returns how it ended.
func settle(t testing.TB, p subprocess.Process) subprocess.Outcome {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatalf("not settled after %v", patience)
	}
	o, err := p.Outcome()
	if err != nil {
		t.Fatalf("outcome: %v", err)
	}
	return o
}

func quiesce(t testing.TB, p subprocess.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Fatalf("quiesce: %v", err)
	}
}

// run runs a command to its end, which must be exit 0, and returns its stdout.
func run(t testing.TB, rt subprocess.Runtime, s subprocess.Spec) string {
	t.Helper()
	p := spawn(t, rt, s)
	if o := settle(t, p); o.ExitCode != 0 {
		t.Fatalf("%q: got %+v, stderr %q", s.Argv, o, p.Stderr().Collected().Tail)
	}
	return string(p.Stdout().Collected().Tail)
}

// await waits until p has written n lines, and returns them.
func await(t testing.TB, p subprocess.Process, n int) []string {
	t.Helper()
	var lines []string
	testkit.Eventually(t, patience, "the command's lines", func() bool {
		text := string(p.Stdout().Collected().Tail)
		lines = strings.Split(text, "\n")
		return len(lines) > n
	})
	return lines[:n]
}

// awaitPid waits for the command's first line, which is a process id.
func awaitPid(t testing.TB, p subprocess.Process) int {
	t.Helper()
	pid, err := strconv.Atoi(await(t, p, 1)[0])
	if err != nil || pid <= 1 {
		t.Fatalf("got the line %q, want a process id", await(t, p, 1))
	}
	return pid
}

// gone reports whether a process has ended. One that was not waited for by its parent has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && strings.HasPrefix(rest, "Z")
}

func awaitGone(t testing.TB, pid int) {
	t.Helper()
	testkit.Eventually(t, patience, "process "+strconv.Itoa(pid)+" has ended", func() bool { return gone(pid) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
