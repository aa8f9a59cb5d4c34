package sandboxlocal_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// limit is how long a single command may take on a busy machine.
const limit = 30 * time.Second

// world is a machine with a sandbox, a workspace, and something outside of it.
type world struct {
	ws, home, outside string
	runtime           subprocess.Runtime
	provider          sandbox.Provider
	policy            sandbox.Policy
	env               map[string]string
	bash              string
}

// build makes a world whose sandbox has this configuration.
func build(t testing.TB, configure func(*sandboxlocal.Config)) *world {
	t.Helper()
	dir := visibleTemp(t)
	w := &world{ws: filepath.Join(dir, "ws"), home: filepath.Join(dir, "home"), outside: filepath.Join(dir, "outside")}
	for _, d := range []string{w.ws, w.home, w.outside} {
		must(t, os.Mkdir(d, 0o700))
	}
	write(t, filepath.Join(w.outside, "secret"), "outside\n")
	w.open(t, configure)
	return w
}

// environment guards DSH_HOME, which modules read when they are made.
var environment sync.Mutex

func (w *world) open(t testing.TB, configure func(*sandboxlocal.Config)) {
	t.Helper()
	environment.Lock()
	defer environment.Unlock()
	before, had := os.LookupEnv("DSH_HOME")
	os.Setenv("DSH_HOME", w.home)
	defer func() {
		if os.Unsetenv("DSH_HOME"); had {
			os.Setenv("DSH_HOME", before)
		}
	}()
	log := slog.New(slog.DiscardHandler)
	r, err := subprocesslocal.New(subprocesslocal.Params{Config: subprocesslocal.DefaultConfig(), Log: log})
	must(t, err)
	must(t, r.Runner.Start(t.Context()))
	t.Cleanup(func() {
		if err := r.Runner.Stop(context.Background()); err != nil {
			t.Errorf("stop the runtime: %v", err)
		}
	})
	c := sandboxlocal.DefaultConfig()
	if configure != nil {
		configure(&c)
	}
	s, err := sandboxlocal.New(sandboxlocal.Params{Config: c, Runtime: r.Runtime, Log: log})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Runner.Stop(context.Background()); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	w.runtime, w.provider = r.Runtime, s.Provider
	w.bash, err = r.Runtime.ResolveExecutable(t.Context(), "bash")
	must(t, err)
	w.policy = sandbox.Policy{Mode: sandbox.WorkspaceWrite, WorkspaceRoot: w.ws, SessionID: "session-1"}
}

// with returns w under another mode.
func (w *world) with(m sandbox.Mode) *world {
	changed := *w
	changed.policy.Mode = m
	return &changed
}

// outcome is what came of a command.
type outcome struct {
	code           int
	stdout, stderr string
	verdict        sandbox.Verdict
	confined       *sandbox.Confined
}

func (w *world) spec(command string) subprocess.Spec {
	return subprocess.Spec{
		Path: w.bash, Argv: []string{"bash", "-c", command}, Dir: w.ws, Grace: 3 * time.Second,
		Env:    subprocess.Env{Set: w.env},
		Stdout: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 1 << 20}},
		Stderr: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 1 << 16}},
	}
}

// run runs a command to its end.
func (w *world) run(t testing.TB, command string) outcome {
	t.Helper()
	return w.runSpec(t, w.spec(command))
}

func (w *world) runSpec(t testing.TB, s subprocess.Spec) outcome {
	t.Helper()
	o, err := w.try(t, s)
	if err != nil {
		t.Fatalf("%q: %v", s.Argv, err)
	}
	return o
}

// try is run for what may be refused. As an executor does, it tries again when the provider says so.
func (w *world) try(t testing.TB, s subprocess.Spec) (outcome, error) {
	t.Helper()
	return w.complete(t, s, false)
}

func (w *world) complete(t testing.TB, s subprocess.Spec, proven bool) (o outcome, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for range 3 {
		c, err := w.provider.Confine(ctx, sandbox.Request{Spec: s, Policy: w.policy, Proven: proven})
		if err != nil {
			return outcome{}, err
		}
		o, err = w.once(ctx, t, c)
		if reason, ok := c.Evidence.RunnerRefused(err); ok {
			o.verdict = sandbox.Verdict{RunnerFailed: true, Reason: reason}
		} else if err != nil {
			return outcome{}, err
		}
		if !o.verdict.RunnerFailed {
			return o, nil
		}
		if !c.Evidence.Failed(ctx, o.verdict.Reason) {
			break
		}
	}
	return o, &sandbox.UnavailableError{Mode: w.policy.Mode, Reason: o.verdict.Reason}
}

func (w *world) once(ctx context.Context, t testing.TB, c *sandbox.Confined) (outcome, error) {
	t.Helper()
	watch := c.Evidence.Watch()
	c.Spec.Stderr.Collect = &subprocess.Collect{MaxBytes: 1 << 16, Tee: watch.Stderr}
	p, err := w.runtime.Spawn(ctx, c.Spec)
	if err != nil {
		watch.Abandon()
		return outcome{confined: c}, err
	}
	defer quiesce(t, p)
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Terminate()
		<-p.Done()
		t.Errorf("%.200q took longer than %v; stdout %q, stderr %q", c.Spec.Argv, limit, p.Stdout().Collected().Tail, p.Stderr().Collected().Tail)
	}
	end, err := p.Outcome()
	must(t, err)
	return outcome{
		code: end.ExitCode, stdout: string(p.Stdout().Collected().Tail), stderr: string(p.Stderr().Collected().Tail),
		verdict: watch.End(end, false), confined: c,
	}, nil
}

// quiesce ends what is left of p.
func quiesce(t testing.TB, p subprocess.Process) {
	t.Helper()
	p.Terminate()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Quiesce(ctx); err != nil {
		t.Error(err)
	}
}

// backends are those that a test goes through; those that this machine lacks are skipped.
func eachBackend(t *testing.T, f func(t *testing.T, w *world, backend string)) {
	for _, backend := range []string{sandboxlocal.BackendBwrap, sandboxlocal.BackendLandlock} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			f(t, pinned(t, backend), backend)
		})
	}
}

// pinned is build with one backend.
func pinned(t testing.TB, backend string) *world {
	t.Helper()
	if backend == sandboxlocal.BackendBwrap {
		testkit.NeedProgram(t, "bwrap")
	}
	w := build(t, func(c *sandboxlocal.Config) { c.Backend = backend })
	if backend == sandboxlocal.BackendLandlock {
		testkit.Need(t, "Landlock in the kernel", w.provider.Backends(t.Context())[0].Usable)
	}
	return w
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// visibleTemp is a temporary directory outside of /tmp, which a sandbox hides.
func visibleTemp(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func absent(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there (%v)", path, err)
		}
	}
}

func root() bool { return os.Geteuid() == 0 }

func itoa(n int) string { return strconv.Itoa(n) }

// quote makes one word of the shell's.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
