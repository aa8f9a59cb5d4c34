package bashexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"dsh/module"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Executor runs commands with bash. Its methods may be called concurrently, once Locate has succeeded.
type Executor struct {
	runtime                subprocess.Runtime
	cwd                    string
	timeout, maxTimeout    time.Duration
	maxOutput, maxSpill    int64
	grace                  time.Duration
	terminatesWhatSurvives bool
	limits                 subprocess.Limits

	bash atomic.Pointer[string]
}

// Prepare edits what is about to be spawned for a command, such as to put a sandbox around it. Its context ends with the
// command's deadline, and what it is given is complete: s.Path is bash, s.Argv what bash sees.
type Prepare func(ctx context.Context, s *subprocess.Spec) error

// New returns an executor over a runtime. The configuration is one that Validate has passed.
func New(r subprocess.Runtime, c Config) *Executor {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return &Executor{
		runtime: r, cwd: c.Cwd,
		timeout: ms(c.TimeoutMs), maxTimeout: ms(c.MaxTimeoutMs),
		maxOutput: c.MaxOutputBytes, maxSpill: c.MaxSpillBytes,
		grace: ms(c.GraceMs), terminatesWhatSurvives: c.Survivors == Terminate,
		limits: subprocess.Limits{MemoryMax: c.MemoryMax, PidsMax: c.PidsMax, CPUMax: c.CPUMax},
	}
}

// Locate finds bash, once for all commands: what a workspace holds or a later PATH says cannot change the shell.
func (e *Executor) Locate(ctx context.Context) error {
	path, err := e.runtime.ResolveExecutable(ctx, "bash")
	if err != nil {
		return fmt.Errorf("commands need bash: %w", err)
	}
	if err := e.allowLimits(); err != nil {
		return err
	}
	e.bash.Store(&path)
	return nil
}

// allowLimits finds out, before there is a command, whether commands can have the limits that are asked for.
func (e *Executor) allowLimits() error {
	if e.limits == (subprocess.Limits{}) {
		return nil
	}
	limiter, limits := e.runtime.(subprocess.Limiter)
	var errs []error
	for _, limit := range []struct {
		key   string
		alone subprocess.Limits
	}{
		{"memoryMax", subprocess.Limits{MemoryMax: e.limits.MemoryMax}},
		{"pidsMax", subprocess.Limits{PidsMax: e.limits.PidsMax}},
		{"cpuMax", subprocess.Limits{CPUMax: e.limits.CPUMax}},
	} {
		if limit.alone == (subprocess.Limits{}) {
			continue
		}
		if !limits {
			errs = append(errs, module.Field(limit.key, "cannot be enforced: this runtime knows no limits"))
		} else if err := limiter.AllowLimits(limit.alone); err != nil {
			errs = append(errs, module.Field(limit.key, "cannot be enforced: %v", err))
		}
	}
	return errors.Join(errs...)
}

// Resolve is shell.Executor's.
func (e *Executor) Resolve(r shell.Request) (shell.Spec, error) {
	s := shell.Spec{
		Command: r.Command, Workdir: r.Workdir, Timeout: e.timeout, StdoutMaxBytes: e.maxOutput,
		Stdin: r.Stdin, Env: r.Env, Facts: r.Facts, Progress: r.Progress, Policy: r.Policy,
	}
	if err := checkCommand(r.Command); err != nil {
		return shell.Spec{}, err
	}
	if r.Timeout != nil {
		if *r.Timeout <= 0 {
			return shell.Spec{}, &shell.InvalidError{
				Field: "timeoutMs", Reason: fmt.Sprintf("expected a positive integer, got %d", r.Timeout.Milliseconds()),
			}
		}
		s.Timeout, s.TimeoutClamped = min(*r.Timeout, e.maxTimeout), *r.Timeout > e.maxTimeout
	}
	switch {
	case r.StdoutMaxBytes < 0:
		return shell.Spec{}, &shell.InvalidError{
			Field: "stdoutMaxBytes", Reason: fmt.Sprintf("expected a positive integer, got %d", r.StdoutMaxBytes),
		}
	case r.StdoutMaxBytes > 0:
		s.StdoutMaxBytes = r.StdoutMaxBytes
	}
	if s.Workdir == "" {
		s.Workdir = e.cwd
	}
	if s.Workdir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return shell.Spec{}, fmt.Errorf("the host's working directory: %w", err)
		}
		s.Workdir = wd
	}
	if !filepath.IsAbs(s.Workdir) {
		return shell.Spec{}, &shell.InvalidError{
			Field: "workdir", Reason: fmt.Sprintf("expected an absolute path, got %q", s.Workdir),
		}
	}
	return s, nil
}

// request is the process of s, as bash -c would run it in the foreground of nothing.
func (e *Executor) request(s shell.Spec) (subprocess.Spec, error) {
	if err := checkCommand(s.Command); err != nil {
		return subprocess.Spec{}, err
	}
	bash := e.bash.Load()
	if bash == nil {
		return subprocess.Spec{}, errors.New("the shell has not been started")
	}
	return subprocess.Spec{
		Path: *bash, Argv: argv(s.Command),
		Dir: s.Workdir, Env: environment(s),
		Stdin:  subprocess.Stdin{Reader: s.Stdin},
		Stdout: e.collect(s.Progress, shell.Stdout, s.StdoutMaxBytes),
		Stderr: e.collect(s.Progress, shell.Stderr, e.maxOutput),
		Grace:  e.grace,
		Limits: e.limits,
	}, nil
}

func (e *Executor) collect(progress func(shell.Stream, []byte), stream shell.Stream, maxBytes int64) subprocess.Output {
	c := &subprocess.Collect{MaxBytes: maxBytes, SpillMaxBytes: e.maxSpill}
	if progress != nil {
		c.Tee = func(p []byte) { progress(stream, p) }
	}
	return subprocess.Output{Collect: c}
}

// spawn prepares and starts a command's process. The context bounds the preparation. It is not given to the process, for
// it may end while survivors of a finished command go on.
func (e *Executor) spawn(ctx context.Context, sub subprocess.Spec, prepare Prepare) (subprocess.Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(ctx, &sub); err != nil {
			return nil, err
		}
		if err := context.Cause(ctx); err != nil {
			for _, f := range sub.ExtraFiles {
				f.Close()
			}
			return nil, err
		}
	}
	p, err := e.runtime.Spawn(context.WithoutCancel(ctx), sub)
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	return p, nil
}

// endRest ends what is left of a settled command's range and waits for that. It reports whether the range is empty.
func (e *Executor) endRest(p subprocess.Process) bool {
	p.Terminate()
	// KILL comes after grace; it takes a moment to be felt.
	ctx, cancel := context.WithTimeout(context.Background(), e.grace+500*time.Millisecond)
	defer cancel()
	return p.Quiesce(ctx) == nil
}

func checkCommand(command string) error {
	if strings.ContainsRune(command, 0) {
		return &shell.InvalidError{Field: "command", Reason: "expected text without NUL bytes"}
	}
	if len(command) > maxCommand {
		return fmt.Errorf("%w: command is %d bytes, limit %d", shell.ErrCommandTooLong, len(command), maxCommand)
	}
	return nil
}
