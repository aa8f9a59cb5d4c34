//go:build unix

package subprocesstest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dsh/module"
	"dsh/modules/subprocess"
)

// faults are runtimes that break one promise each, and the test that must say so.
var faults = []struct {
	name, caught string
	spawn        func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error)
	wrap         func(subprocess.Process) subprocess.Process
}{
	{name: "signals the leader alone", caught: "termination/TERM-proof_child_of_a_dead_leader", wrap: func(p subprocess.Process) subprocess.Process {
		return leaderOnly{p.(*plainProcess)}
	}},
	{name: "never kills", caught: "termination/TERM-proof_leader", wrap: func(p subprocess.Process) subprocess.Process {
		return termOnly{p.(*plainProcess)}
	}},
	{name: "kills at once", caught: "termination/status_of_who_handles_it", wrap: func(p subprocess.Process) subprocess.Process {
		return killer{p.(*plainProcess)}
	}},
	{name: "does not hurry", caught: "termination/hurried", wrap: func(p subprocess.Process) subprocess.Process {
		return patient{p.(*plainProcess)}
	}},
	{name: "ends what is to be hurried", caught: "termination/hurried_alone", wrap: func(p subprocess.Process) subprocess.Process {
		return rash{p.(*plainProcess)}
	}},
	{name: "is quiescent when the leader has ended", caught: "termination/quiescence_is_waited_for_as_long_as_the_context_lasts", wrap: func(p subprocess.Process) subprocess.Process {
		return hasty{p}
	}},
	{name: "loses the end of the output", caught: "output/the_end_is_not_lost", wrap: func(p subprocess.Process) subprocess.Process {
		return reading{p, func(c *subprocess.Collected) {
			if len(c.Tail) > 0 {
				c.Tail = c.Tail[:len(c.Tail)-1]
			}
		}}
	}},
	{name: "does not say that output is missing", caught: "output/tail_and_file", wrap: func(p subprocess.Process) subprocess.Process {
		return reading{p, func(c *subprocess.Collected) { c.Truncated = false }}
	}},
	{name: "names a file that is not whole", caught: "output/a_file_that_is_outgrown", wrap: func(p subprocess.Process) subprocess.Process {
		var once sync.Mutex
		path := ""
		return reading{p, func(c *subprocess.Collected) {
			once.Lock()
			defer once.Unlock()
			if c.SpillPath == "" {
				c.SpillPath = path
			}
			path = c.SpillPath
		}}
	}},
	{name: "ignores the end of the context", caught: "termination/context_ends", spawn: func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return r.Spawn(context.WithoutCancel(ctx), s)
	}},
	{name: "does not scrub the environment", caught: "environment/scrubbed", spawn: func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
		all := parse(strings.Join(os.Environ(), "\x00"))
		for name, value := range s.Env.Set {
			all[name] = value
		}
		if len(s.Env.Unset) == 0 {
			s.Env.Set = all
		}
		return r.Spawn(ctx, s)
	}},
	{name: "gives the host's stdin", caught: "stdin/null_device", spawn: func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
		if !s.Stdin.Pipe && s.Stdin.Bytes == nil && s.Stdin.Reader == nil {
			f, _ := os.Open("/dev/zero")
			defer f.Close()
			s.Stdin.Reader = f
		}
		return r.Spawn(ctx, s)
	}},
	{name: "keeps extra files open", caught: "refusals/extra_files_are_closed", spawn: func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
		s.ExtraFiles = nil
		return r.Spawn(ctx, s)
	}},
	{name: "starts before it refuses", caught: "refusals/ended_context", spawn: func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
		p, err := r.Spawn(ctx, s)
		if err != nil && len(s.Argv) == 3 && s.Argv[2] == "touch mark" {
			os.WriteFile(s.Dir+"/mark", nil, 0o600)
		}
		return p, err
	}},
}

const faultVariable = "SUITE_FAULT"

// TestSuiteCatches runs the suite over each broken runtime, in a process of its own, which must fail.
func TestSuiteCatches(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestBroken$/^"+strings.ReplaceAll(f.caught, "/", "$/^")+"$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), faultVariable+"="+f.name, patienceVariable+"=2s")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the tests of %s pass", f.caught)
			} else if !strings.Contains(string(out), "--- FAIL: TestBroken/"+f.caught) {
				t.Errorf("another failure than one of %s:\n%s", f.caught, out)
			}
		})
	}
}

// TestBroken is what TestSuiteCatches runs.
func TestBroken(t *testing.T) {
	name := os.Getenv(faultVariable)
	for _, f := range faults {
		if f.name == name {
			Run(t, func(t testing.TB) (subprocess.Runtime, module.Runner) {
				rt, runner := newPlain(t)
				return broken{rt, f.spawn, f.wrap}, runner
			}, Options{})
		}
	}
}

type broken struct {
	subprocess.Runtime
	spawn func(r subprocess.Runtime, ctx context.Context, s subprocess.Spec) (subprocess.Process, error)
	wrap  func(subprocess.Process) subprocess.Process
}

func (b broken) Spawn(ctx context.Context, s subprocess.Spec) (p subprocess.Process, err error) {
	if b.spawn != nil {
		return b.spawn(b.Runtime, ctx, s)
	}
	p, err = b.Runtime.Spawn(ctx, s)
	if err != nil {
		return nil, err
	}
	return b.wrap(p), nil
}

type leaderOnly struct{ *plainProcess }

func (p leaderOnly) Terminate() { p.cmd.Process.Signal(syscall.SIGTERM) }

type termOnly struct{ *plainProcess }

func (p termOnly) Terminate() { p.signal(false) }

type killer struct{ *plainProcess }

func (p killer) Terminate() { p.signal(true) }

type patient struct{ *plainProcess }

func (p patient) Hurry() {}

type rash struct{ *plainProcess }

func (p rash) Hurry() { p.signal(true) }

type hasty struct{ subprocess.Process }

func (p hasty) Quiesce(context.Context) error {
	<-p.Done()
	return nil
}

// reading distorts what is read of a process's output.
type reading struct {
	subprocess.Process
	distort func(*subprocess.Collected)
}

func (p reading) Stdout() subprocess.Reader { return distorted(p.Process.Stdout(), p.distort) }
func (p reading) Stderr() subprocess.Reader { return distorted(p.Process.Stderr(), p.distort) }

func distorted(r subprocess.Reader, distort func(*subprocess.Collected)) subprocess.Reader {
	if r == nil {
		return nil
	}
	return distortedReader{r, distort}
}

type distortedReader struct {
	subprocess.Reader
	distort func(*subprocess.Collected)
}

func (r distortedReader) Collected() subprocess.Collected {
	c := r.Reader.Collected()
	r.distort(&c)
	return c
}
