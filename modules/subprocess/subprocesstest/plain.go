package subprocesstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/internal/collect"
	"dsh/modules/internal/procspec"
	"dsh/modules/subprocess"
)

// Plain is a runtime over os/exec. It owns the process group of a command and nothing that leaves it: of the contract it
// lacks ranges, and OnThread. What holds an output open delays settling by the Spec's grace.
type Plain struct {
	env *procspec.Environment
	log *slog.Logger

	mu      sync.Mutex
	stopped bool
	live    map[*plainProcess]struct{}
	spills  string // made at the first spill, removed at Stop
}

var _ subprocess.Runtime = (*Plain)(nil)

// PlainConfig is the configuration of the module subprocess-plain: none.
type PlainConfig struct{}

// PlainParams is what NewPlain takes.
type PlainParams struct {
	fx.In

	Config PlainConfig
	Log    *slog.Logger
}

// PlainResult is what NewPlain gives.
type PlainResult struct {
	fx.Out

	Runtime subprocess.Runtime
	Runner  module.Runner
}

// Module returns Plain as a module that a row can mount.
func Module() module.Module {
	return module.Define(module.Spec[PlainConfig]{
		Name:        "subprocess-plain",
		Summary:     "starts programs in process groups, for tests that exchange subprocess-local",
		Constructor: NewPlain,
	})
}

// NewPlain returns a Plain and what stops it.
func NewPlain(p PlainParams) PlainResult {
	r := &Plain{env: procspec.NewEnvironment(), log: p.Log, live: map[*plainProcess]struct{}{}}
	return PlainResult{Runtime: r, Runner: module.Runner{Stop: r.stop, Kill: r.kill}}
}

// Spawn implements subprocess.Runtime.
func (r *Plain) Spawn(ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
	defer closeAll(s.ExtraFiles)
	if err := procspec.Validate(ctx, s); err != nil {
		return nil, err
	}
	if s.OnThread != nil {
		return nil, &subprocess.InvalidError{Field: "onThread", Reason: "is not supported by this runtime"}
	}
	if s.Limits != (subprocess.Limits{}) {
		return nil, &subprocess.InvalidError{Field: "limits", Reason: "are not supported by this runtime"}
	}
	path, err := r.env.Resolve(ctx, procspec.Program(s))
	if err != nil {
		return nil, err
	}
	p := &plainProcess{spec: s, done: make(chan struct{}), empty: make(chan struct{}), hurry: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path: path, Args: s.Argv, Dir: s.Dir, Env: r.env.For(s.Env), ExtraFiles: s.ExtraFiles,
		SysProcAttr: ownGroup(), WaitDelay: s.Grace,
	}
	opened, err := r.stdio(p)
	defer closeAll(opened)
	if err != nil {
		return nil, p.abandon(err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, p.abandon(subprocess.ErrStopped)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, p.abandon(fmt.Errorf("start %s: %w", path, err))
	}
	if p.feed != nil {
		go p.feed()
	}
	r.live[p] = struct{}{}
	for _, c := range p.copies {
		go c.run()
	}
	stopWatching := context.AfterFunc(ctx, p.Terminate)
	go func() {
		p.wait()
		stopWatching()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.live, p)
	}()
	return p, nil
}

// ResolveExecutable implements subprocess.Runtime.
func (r *Plain) ResolveExecutable(ctx context.Context, name string) (string, error) {
	return r.env.Resolve(ctx, name)
}

// Withhold implements subprocess.Runtime.
func (r *Plain) Withhold(names ...string) (undo func()) { return r.env.Withhold(names...) }

// Range implements subprocess.Runtime.
func (r *Plain) Range() subprocess.RangeKind { return subprocess.RangeNone }

func (r *Plain) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	live := make([]*plainProcess, 0, len(r.live))
	for p := range r.live {
		live = append(live, p)
	}
	r.mu.Unlock()
	for _, p := range live {
		p.Terminate()
	}
	var err error
	for _, p := range live {
		if e := p.Quiesce(ctx); e != nil {
			r.kill()
			err = errors.Join(err, fmt.Errorf("%s: %w", p.spec.Argv[0], e))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spills != "" {
		err = errors.Join(err, os.RemoveAll(r.spills))
	}
	return err
}

func (r *Plain) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.live {
		p.signal(true)
	}
}

// stdio connects p's streams and returns what to close once the child has it.
func (r *Plain) stdio(p *plainProcess) (opened []*os.File, err error) {
	switch in := p.spec.Stdin; {
	case in.Bytes != nil:
		p.cmd.Stdin = bytes.NewReader(in.Bytes)
	case in.Reader != nil:
		if f, ok := in.Reader.(*os.File); ok {
			p.cmd.Stdin = f
			break
		}
		// Not left to os/exec, whose Wait waits for a Read that may never return.
		child, ours, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.cmd.Stdin, p.stdin = child, ours
		opened = append(opened, child)
		p.feed = func() {
			io.Copy(ours, in.Reader)
			ours.Close()
		}
	case in.Pipe:
		child, ours, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.cmd.Stdin, p.stdin = child, ours
		opened = append(opened, child)
	}
	for _, o := range []struct {
		name   string
		spec   subprocess.Output
		host   *os.File
		target *io.Writer
		pipe   **os.File
		kept   **collect.Collector
	}{
		{"stdout", p.spec.Stdout, os.Stdout, &p.cmd.Stdout, &p.stdoutPipe, &p.stdout},
		{"stderr", p.spec.Stderr, os.Stderr, &p.cmd.Stderr, &p.stderrPipe, &p.stderr},
	} {
		switch {
		case o.spec.Inherit:
			*o.target = o.host
		case o.spec.Pipe:
			ours, child, err := os.Pipe()
			if err != nil {
				return opened, err
			}
			*o.target, *o.pipe = child, ours
			opened = append(opened, child)
		default:
			*o.kept = collect.New(collect.Config{
				MaxBytes: o.spec.Collect.MaxBytes, SpillMaxBytes: o.spec.Collect.SpillMaxBytes,
				Create: func() (*os.File, error) { return r.spill(o.name) },
				Trouble: func(err error) {
					r.log.Warn("no file with the whole output", "stream", o.name, "error", err)
				},
			})
			ours, child, err := os.Pipe()
			if err != nil {
				return opened, err
			}
			*o.target = child
			opened = append(opened, child)
			p.copies = append(p.copies, plainCopy{ours, teed{*o.kept, o.spec.Collect.Tee}, make(chan struct{})})
		}
	}
	return opened, nil
}

func (r *Plain) spill(stream string) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spills == "" {
		dir, err := os.MkdirTemp("", "dsh-plain-")
		if err != nil {
			return nil, err
		}
		r.spills = dir
	}
	return os.CreateTemp(r.spills, "*-"+stream+".log")
}

// plainCopy reads an output to its end. It is no business of os/exec's, which would wait for a tee that is stuck.
type plainCopy struct {
	from *os.File
	to   teed
	done chan struct{}
}

func (c plainCopy) run() {
	defer close(c.done)
	defer c.from.Close()
	io.Copy(c.to, c.from)
}

// teed passes a stream on to its collector and its tee.
type teed struct {
	to  *collect.Collector
	tee func([]byte)
}

func (t teed) Write(p []byte) (int, error) {
	if t.tee != nil {
		t.tee(p)
	}
	return t.to.Write(p)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

type plainProcess struct {
	spec           subprocess.Spec
	cmd            *exec.Cmd
	stdin          *os.File
	feed           func() // writes a Reader's bytes to stdin
	stdoutPipe     *os.File
	stderrPipe     *os.File
	stdout, stderr *collect.Collector
	copies         []plainCopy

	outcome    subprocess.Outcome
	err        error
	done       chan struct{}
	survivors  int
	empty      chan struct{} // closed when the group is empty
	terminated sync.Once
	hurried    sync.Once
	hurry      chan struct{} // closed when no grace is given

	mu   sync.Mutex
	gone bool // the group is known to be empty: its number may be another's
}

var _ subprocess.Process = (*plainProcess)(nil)

func (p *plainProcess) wait() {
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && p.cmd.ProcessState == nil {
		p.err = err
	} else {
		p.outcome = outcome(p.cmd.ProcessState)
	}
	grace := time.NewTimer(p.spec.Grace)
	defer grace.Stop()
	for _, c := range p.copies {
		select {
		case <-c.done:
		case <-grace.C:
			grace.Reset(0) // for the other one
		}
		c.to.to.Seal()
		c.from.Close()
	}
	if !p.vacant() {
		p.survivors = 1 // at least; a group cannot be counted
	}
	close(p.done)
	for !p.vacant() {
		time.Sleep(20 * time.Millisecond)
	}
	if p.feed != nil {
		p.stdin.Close()
	}
	close(p.empty)
}

// vacant reports whether nothing of the group is left, and remembers it.
func (p *plainProcess) vacant() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = p.gone || groupGone(p.cmd.Process.Pid)
	return p.gone
}

// signal sends TERM, or KILL, to the group while there is one.
func (p *plainProcess) signal(kill bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		signalGroup(p.cmd.Process, kill)
	}
}

// Terminate implements subprocess.Process. The wrapper of a Spec is not spared.
func (p *plainProcess) Terminate() {
	p.terminated.Do(func() {
		p.signal(false)
		go func() {
			grace := time.NewTimer(p.spec.Grace)
			defer grace.Stop()
			select {
			case <-grace.C:
				p.signal(true)
			case <-p.hurry:
				p.signal(true)
			case <-p.empty:
			}
		}()
	})
}

// Hurry implements subprocess.Process.
func (p *plainProcess) Hurry() { p.hurried.Do(func() { close(p.hurry) }) }

// Quiesce implements subprocess.Process.
func (p *plainProcess) Quiesce(ctx context.Context) error {
	select {
	case <-p.empty:
		return nil
	default:
	}
	select {
	case <-p.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done implements subprocess.Process.
func (p *plainProcess) Done() <-chan struct{} { return p.done }

// Outcome implements subprocess.Process.
func (p *plainProcess) Outcome() (subprocess.Outcome, error) {
	<-p.done
	return p.outcome, p.err
}

// Survivors implements subprocess.Process.
func (p *plainProcess) Survivors() int {
	select {
	case <-p.done:
		return p.survivors
	default:
		return 0
	}
}

// Stdin implements subprocess.Process.
func (p *plainProcess) Stdin() io.WriteCloser {
	if p.stdin == nil || !p.spec.Stdin.Pipe {
		return nil
	}
	return p.stdin
}

// StdoutPipe implements subprocess.Process.
func (p *plainProcess) StdoutPipe() io.ReadCloser {
	if p.stdoutPipe == nil {
		return nil
	}
	return p.stdoutPipe
}

// StderrPipe implements subprocess.Process.
func (p *plainProcess) StderrPipe() io.ReadCloser {
	if p.stderrPipe == nil {
		return nil
	}
	return p.stderrPipe
}

// Stdout implements subprocess.Process.
func (p *plainProcess) Stdout() subprocess.Reader {
	if p.stdout == nil {
		return nil
	}
	return p.stdout
}

// Stderr implements subprocess.Process.
func (p *plainProcess) Stderr() subprocess.Reader {
	if p.stderr == nil {
		return nil
	}
	return p.stderr
}

// abandon closes what a caller would have had of a process that was not started.
func (p *plainProcess) abandon(err error) error {
	for _, f := range []*os.File{p.stdin, p.stdoutPipe, p.stderrPipe} {
		if f != nil {
			f.Close()
		}
	}
	for _, c := range p.copies {
		c.from.Close()
	}
	return err
}
