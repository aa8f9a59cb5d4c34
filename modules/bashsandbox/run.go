package bashsandbox

import (
	"context"
	"os"
	"sync"
	"time"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Run implements shell.Executor.
func (x *executor) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	p, err := policy(s)
	if err != nil {
		return shell.Result{}, err
	}
	if p.Mode == sandbox.DangerFullAccess {
		r, err := x.bash.Run(ctx, s, nil)
		if err == nil {
			r.Sandbox = &sandbox.Facts{Mode: p.Mode}
		}
		return r, err
	}
	begin, timeout := time.Now(), s.Timeout
	// What a runner that failed may have taken from a reader cannot be given to the next one.
	_, file := s.Stdin.(*os.File)
	once := s.Stdin != nil && !file
	for n := 1; ; n++ {
		c := &confinement{provider: x.sandbox, policy: p, proven: once}
		r, err := x.bash.Run(ctx, s, c.prepare)
		v, reason, failed := c.judge(r, err)
		if failed && c.confined.Evidence.Failed != nil && !once && n < attempts {
			// What is left of the time is for what comes now.
			s.Timeout = max(timeout-time.Since(begin), 1)
			within, cancel := context.WithTimeout(ctx, s.Timeout)
			again := c.confined.Evidence.Failed(within, reason)
			cancel()
			if s.Timeout = max(timeout-time.Since(begin), 1); again || s.Timeout == 1 || ctx.Err() != nil {
				continue
			}
		}
		if failed {
			return shell.Result{}, unavailable(p.Mode, reason)
		}
		if err != nil {
			return shell.Result{}, err
		}
		r.TimeoutMs, r.DurationMs = timeout.Milliseconds(), time.Since(begin).Milliseconds()
		r.Sandbox = c.facts(v)
		return r, nil
	}
}

// confinement is the sandbox of one spawn.
type confinement struct {
	provider sandbox.Provider
	policy   sandbox.Policy
	proven   bool

	confined *sandbox.Confined // nil until the command was confined
	watch    *sandbox.Watch
	stderr   *holder // nil: nobody looks
	spawned  bool    // the command's own output is to be expected

	once    sync.Once
	verdict sandbox.Verdict
}

// prepare is a bashexec.Prepare.
func (c *confinement) prepare(ctx context.Context, s *subprocess.Spec) error {
	bare := *s
	bare.Argv = named(s.Argv)
	confined, err := c.provider.Confine(ctx, sandbox.Request{Spec: bare, Policy: c.policy, Proven: c.proven})
	if err != nil {
		return err
	}
	c.confined, c.watch = confined, confined.Evidence.Watch()
	*s = confined.Spec
	collect := *s.Stderr.Collect
	look := c.watch.Stderr
	if tee := collect.Tee; tee != nil {
		c.stderr = &holder{to: tee, runner: confined.Evidence.Runner}
		look = func(p []byte) {
			c.watch.Stderr(p)
			c.stderr.write(p)
		}
	}
	collect.Tee = look
	s.Stderr.Collect = &collect
	return nil
}

// named returns bash's arguments with the name that it is to call itself, which a runner does not hand on otherwise. A
// command in pieces has it already.
func named(argv []string) []string {
	if n := len(argv); argv[n-2] == "-c" || argv[n-2] == "--" && argv[n-3] == "-c" {
		return append(argv[:n:n], argv[0])
	}
	return argv
}

// judge returns what came of a foreground command; failed says that it was not executed.
func (c *confinement) judge(r shell.Result, err error) (v sandbox.Verdict, reason string, failed bool) {
	if c.confined == nil {
		return v, "", false
	}
	if err != nil {
		c.watch.Abandon()
		reason, failed = c.confined.Evidence.RunnerRefused(err)
		return v, reason, failed
	}
	v = c.end(r.ExitCode, r.Signal, r.TimedOut || r.Aborted)
	return v, v.Reason, v.RunnerFailed
}

// end reads the end of a process that was spawned, or of one that there was no time to spawn, once.
func (c *confinement) end(code *int, signal *string, ended bool) sandbox.Verdict {
	c.once.Do(func() { c.verdict = c.read(code, signal, ended) })
	return c.verdict
}

func (c *confinement) read(code *int, signal *string, ended bool) sandbox.Verdict {
	if code == nil && signal == nil {
		c.watch.Abandon()
		return sandbox.Verdict{}
	}
	c.spawned = true
	o := subprocess.Outcome{ExitCode: -1}
	if signal != nil {
		o.Signal = *signal
	} else {
		o.ExitCode = *code
	}
	v := c.watch.End(o, ended)
	if c.stderr != nil && !v.RunnerFailed {
		c.stderr.release()
	}
	return v
}

// facts returns what a result says; of a command that was not spawned it claims nothing.
func (c *confinement) facts(v sandbox.Verdict) *sandbox.Facts {
	f := &sandbox.Facts{Mode: c.policy.Mode, Denied: v.Denied, DeniedBy: v.DeniedBy, RunnerFailed: v.RunnerFailed}
	if c.spawned {
		f.Enforcement, f.Backend = c.confined.Enforcement, c.confined.Backend
	}
	return f
}
