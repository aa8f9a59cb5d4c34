//go:build unix

package shelltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// fake is an executor over os/exec and process groups. Each of its faults breaks a promise.
type fake struct {
	faults faults
	mu     sync.Mutex
	groups []int
}

type faults struct {
	lastCause, successWins, headKept, boundaryIgnored, readTwice, tornRead, lossHidden bool
	startFollowsContext, startTimesOut, runDefaults, endedContextRuns, contextLingers  bool
	hurryIgnored                                                                       bool
	killTwice, survivesKill, killForgotten, factsUnderEnv, dirUnchecked, exitIsError   bool
}

const (
	fakeGrace = 1500 * time.Millisecond
	fakeCap   = 10 * time.Minute
	fakeLimit = 131_071
)

func newFake(tb testing.TB, f faults) *fake {
	x := &fake{faults: f}
	tb.Cleanup(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, g := range x.groups {
			syscall.Kill(-g, syscall.SIGKILL)
		}
	})
	return x
}

func (*fake) Mode() (sandbox.Mode, bool) { return "", false }

func (x *fake) Resolve(r shell.Request) (shell.Spec, error) {
	s := shell.Spec{
		Command: r.Command, Workdir: r.Workdir, Timeout: time.Minute, StdoutMaxBytes: r.StdoutMaxBytes,
		Stdin: r.Stdin, Env: r.Env, Facts: r.Facts, Progress: r.Progress,
	}
	if r.Timeout != nil {
		if *r.Timeout <= 0 {
			return s, &shell.InvalidError{Field: "timeoutMs", Reason: fmt.Sprintf("expected a positive integer, got %d", r.Timeout.Milliseconds())}
		}
		s.Timeout, s.TimeoutClamped = min(*r.Timeout, fakeCap), *r.Timeout > fakeCap
	}
	if s.StdoutMaxBytes < 0 {
		return s, &shell.InvalidError{Field: "stdoutMaxBytes", Reason: "negative"}
	} else if s.StdoutMaxBytes == 0 {
		s.StdoutMaxBytes = 64_000
	}
	if s.Workdir == "" {
		s.Workdir = os.TempDir()
	}
	if !filepath.IsAbs(s.Workdir) {
		return s, &shell.InvalidError{Field: "workdir", Reason: "relative"}
	}
	return s, x.check(s.Command)
}

func (x *fake) check(command string) error {
	if strings.Contains(command, "\x00") {
		return &shell.InvalidError{Field: "command", Reason: "has a NUL byte"}
	}
	if len(command) > fakeLimit {
		return fmt.Errorf("%w: command is %d bytes, limit %d", shell.ErrCommandTooLong, len(command), fakeLimit)
	}
	return nil
}

func (x *fake) spawn(s shell.Spec) (*fakeProcess, error) {
	if err := x.check(s.Command); err != nil {
		return nil, err
	}
	if info, err := os.Stat(s.Workdir); !x.faults.dirUnchecked && (err != nil || !info.IsDir()) {
		return nil, &subprocess.DirError{Dir: s.Workdir, Err: syscall.ENOTDIR}
	}
	env := map[string]string{}
	maps.Copy(env, s.Env)
	maps.Copy(env, s.Facts)
	if x.faults.factsUnderEnv {
		maps.Copy(env, s.Env)
	}
	cmd := exec.Command("bash", "-c", s.Command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Workdir, os.Environ(), fakeGrace
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &fakeProcess{x: x, cmd: cmd, done: make(chan struct{}), hurry: make(chan struct{}), kept: int(s.StdoutMaxBytes)}
	cmd.Stdout = &fakeStream{p: p, kept: &p.out, stream: shell.Stdout, progress: s.Progress}
	cmd.Stderr = &fakeStream{p: p, kept: &p.err, stream: shell.Stderr, progress: s.Progress}
	var feed *os.File
	if f, ok := s.Stdin.(*os.File); ok {
		cmd.Stdin = f
	} else if s.Stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		cmd.Stdin, feed = r, w
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if feed != nil {
		go func() {
			io.Copy(feed, s.Stdin)
			feed.Close()
		}()
	}
	x.mu.Lock()
	x.groups = append(x.groups, cmd.Process.Pid)
	x.mu.Unlock()
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (x *fake) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	r := shell.Result{TimeoutMs: s.Timeout.Milliseconds(), TimeoutClamped: s.TimeoutClamped, Range: "none"}
	if x.faults.runDefaults {
		s.Timeout, s.StdoutMaxBytes = min(s.Timeout, fakeCap), 64_000
		r.TimeoutMs = s.Timeout.Milliseconds()
	}
	if err := x.check(s.Command); err != nil {
		return r, err
	}
	if ctx.Err() != nil && !x.faults.endedContextRuns {
		r.Aborted = true
		return r, nil
	}
	begin := time.Now()
	expired := errors.New("expired")
	deadline, cancel := context.WithTimeoutCause(ctx, s.Timeout, expired)
	defer cancel()
	p, err := x.spawn(s)
	if err != nil {
		return r, err
	}
	stop := context.AfterFunc(deadline, p.terminate)
	if x.faults.contextLingers {
		context.AfterFunc(ctx, p.terminate)
	}
	<-p.done
	ended := !stop()
	if ended {
		r.TimedOut = context.Cause(deadline) == expired
		if x.faults.lastCause && ctx.Err() != nil {
			r.TimedOut = false
		}
		r.Aborted = !r.TimedOut
		p.gone(context.Background())
	}
	r.ExitCode, r.Signal = p.ending()
	if x.faults.successWins && r.ExitCode != nil && *r.ExitCode == 0 {
		r.TimedOut, r.Aborted = false, false
	}
	if x.faults.exitIsError && r.ExitCode != nil && *r.ExitCode != 0 {
		return r, errors.New("failed")
	}
	r.Stdout, r.Stderr = p.output(p.out, int(s.StdoutMaxBytes)), p.output(p.err, 64_000)
	if !ended && !p.empty() {
		r.Survivors = 1
	}
	r.DurationMs = time.Since(begin).Milliseconds()
	return r, nil
}

func (x *fake) Start(ctx context.Context, s shell.Spec) (shell.Process, error) {
	if err := x.check(s.Command); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := x.spawn(s)
	if err != nil {
		return nil, err
	}
	if x.faults.startFollowsContext {
		context.AfterFunc(ctx, p.terminate)
	}
	if x.faults.startTimesOut {
		time.AfterFunc(s.Timeout, p.terminate)
	}
	return p, nil
}

type fakeProcess struct {
	x    *fake
	cmd  *exec.Cmd
	done chan struct{}
	kept int

	hurried sync.Once
	hurry   chan struct{}

	mu               sync.Mutex
	killed           bool
	out, err         []byte
	outRead, errRead int
}

type fakeStream struct {
	p        *fakeProcess
	kept     *[]byte
	stream   shell.Stream
	progress func(shell.Stream, []byte)
}

func (s *fakeStream) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	*s.kept = append(*s.kept, b...)
	s.p.mu.Unlock()
	if s.progress != nil {
		s.progress(s.stream, b)
	}
	return len(b), nil
}

func (p *fakeProcess) empty() bool {
	return errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
}

func (p *fakeProcess) gone(ctx context.Context) error {
	for !p.empty() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func (p *fakeProcess) terminate() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), fakeGrace)
	defer cancel()
	go func() {
		select {
		case <-p.hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	if p.gone(ctx) != nil {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

func (p *fakeProcess) ending() (*int, *string) {
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return nil, pointer(map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGKILL: "SIGKILL"}[status.Signal()])
	}
	return pointer(status.ExitStatus()), nil
}

func (p *fakeProcess) output(b []byte, kept int) shell.Output {
	o := shell.Output{Bytes: int64(len(b)), Truncated: len(b) > kept}
	if o.Truncated {
		if p.x.faults.headKept {
			b = b[:kept]
		} else {
			b = p.tail(b, kept)
		}
	}
	o.Text = string([]rune(string(b)))
	return o
}

func (p *fakeProcess) tail(b []byte, kept int) []byte {
	b = b[len(b)-kept:]
	for !p.x.faults.boundaryIgnored && len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return b
}

func (p *fakeProcess) Done() <-chan struct{} { return p.done }

func (p *fakeProcess) settled() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *fakeProcess) Status() shell.Status {
	p.mu.Lock()
	killed := p.killed && !p.x.faults.killForgotten
	p.mu.Unlock()
	st := shell.Status{State: shell.Running}
	if p.settled() {
		st.State = shell.Completed
		st.ExitCode, st.Signal = p.ending()
	}
	if killed || st.Signal != nil {
		st.State = shell.Killed
	}
	return st
}

func (p *fakeProcess) ReadOutput() shell.Delta {
	settled := p.settled()
	p.mu.Lock()
	defer p.mu.Unlock()
	var d shell.Delta
	next := func(b []byte, read *int, kept int) string {
		from, to := *read, len(b)
		for !settled && !p.x.faults.tornRead && to > from && !bytes.HasSuffix(b[from:to], []byte("\n")) && !utf8.Valid(b[from:to]) {
			to--
		}
		if !p.x.faults.readTwice {
			*read = to
		}
		if to-from > kept {
			d.Lossy = !p.x.faults.lossHidden
			return string(p.tail(b[from:to], kept))
		}
		return string([]rune(string(b[from:to])))
	}
	d.Stdout, d.Stderr = next(p.out, &p.outRead, p.kept), next(p.err, &p.errRead, 64_000)
	return d
}

func (p *fakeProcess) Kill() bool {
	p.mu.Lock()
	idle := p.killed || p.settled()
	p.killed = p.killed || !idle
	p.mu.Unlock()
	if !idle || !p.x.faults.survivesKill {
		go p.terminate()
	}
	return !idle || p.x.faults.killTwice
}

func (p *fakeProcess) Hurry() {
	if !p.x.faults.hurryIgnored {
		p.hurried.Do(func() { close(p.hurry) })
	}
}

func (p *fakeProcess) Quiesce(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return p.gone(ctx)
}
