//go:build unix

package subprocesslocal

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/subprocess"
)

const (
	// look is how often a range that is being drained or terminated is looked at.
	look = 10 * time.Millisecond
	// closing is how long a range that may be on its way to empty is waited for before its survivors are counted.
	closing = 50 * time.Millisecond
	// pageful is what any fresh pipe takes without blocking.
	pageful = 4096
)

// process is one leader and its range, from spawn to quiescent.
type process struct {
	spec           subprocess.Spec
	members        managedRange
	hurryAll       <-chan struct{} // closed when no termination is to give grace any more
	hurry          chan struct{}   // closed when that of this process is not
	hurried        sync.Once
	unwatch        func() bool // stops following the context
	stdin          *os.File    // the write end of a pipe, whoever writes
	stdout, stderr outputEnd

	done      chan struct{} // closed when settled; the fields below are written before
	outcome   subprocess.Outcome
	err       error
	survivors int

	mu         sync.Mutex
	terminated bool // or there is nothing to terminate any more
	escalating sync.WaitGroup
}

// outputEnd is our end of an output: one of the two, or neither when the output is inherited.
type outputEnd struct {
	stream *stream
	pipe   *os.File
}

var _ subprocess.Process = (*process)(nil)

func newProcess(s subprocess.Spec, hurryAll <-chan struct{}) *process {
	return &process{spec: s, hurryAll: hurryAll, hurry: make(chan struct{}), done: make(chan struct{})}
}

// live sees the process through to quiescence.
func (p *process) live() {
	var helpers sync.WaitGroup
	streams := p.streams()
	for _, s := range streams {
		helpers.Go(s.run)
	}
	p.feed(&helpers)

	status, err := p.members.wait()
	p.outcome, p.err = outcome(status), err
	p.drain(streams, time.Now())
	if !p.vacant(closing) {
		p.survivors = p.members.count()
	}
	p.outcome.OOMKilled = p.members.oomKilled()
	close(p.done)

	<-p.members.empty()
	p.unwatch()
	p.mu.Lock()
	p.terminated = true
	p.mu.Unlock()
	// What is still open is held by something that is not of the range.
	for _, s := range streams {
		s.close()
	}
	if !p.spec.Stdin.Pipe && p.stdin != nil {
		p.stdin.Close()
	}
	helpers.Wait()
	p.escalating.Wait()
	p.members.release()
}

func (p *process) streams() []*stream {
	var streams []*stream
	for _, end := range []outputEnd{p.stdout, p.stderr} {
		if end.stream != nil {
			streams = append(streams, end.stream)
		}
	}
	return streams
}

// feed writes what the Spec has for the child's stdin. Writing ends with what is read, or when the range is empty.
func (p *process) feed(helpers *sync.WaitGroup) {
	switch in := p.spec.Stdin; {
	case in.Bytes != nil && len(in.Bytes) <= pageful:
		p.stdin.Write(in.Bytes)
		p.stdin.Close()
	case in.Bytes != nil:
		helpers.Go(func() {
			p.stdin.Write(in.Bytes)
			p.stdin.Close()
		})
	case in.Reader != nil && p.stdin != nil:
		// Not waited for: nothing here can end a Read of somebody else's.
		go func() {
			io.Copy(p.stdin, in.Reader)
			p.stdin.Close()
		}()
	}
}

// vacant waits for an empty range.
func (p *process) vacant(within time.Duration) bool {
	select {
	case <-p.members.empty():
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.members.empty():
		return true
	case <-timer.C:
		return false
	}
}

// Terminate implements subprocess.Process.
func (p *process) Terminate() {
	p.mu.Lock()
	again := p.terminated
	p.terminated = true
	if !again {
		p.escalating.Add(1)
	}
	p.mu.Unlock()
	if again {
		return
	}
	p.members.term(p.spec.Wrapper)
	go func() {
		defer p.escalating.Done()
		p.escalate()
	}()
}

// Hurry implements subprocess.Process.
func (p *process) Hurry() { p.hurried.Do(func() { close(p.hurry) }) }

// escalate sends TERM to members that are new during grace, and then KILL, until the range is empty.
func (p *process) escalate() {
	grace := time.NewTimer(p.spec.Grace)
	defer grace.Stop()
	tick := time.NewTimer(look)
	defer tick.Stop()
	hurryAll, hurry := p.hurryAll, (<-chan struct{})(p.hurry)
	for killing := false; ; {
		select {
		case <-p.members.empty():
			return
		case <-grace.C:
			killing = true
		case <-hurryAll:
			killing, hurryAll = true, nil
		case <-hurry:
			killing, hurry = true, nil
		case <-tick.C:
		}
		began := time.Now()
		if killing {
			p.members.kill()
		} else {
			p.members.term(p.spec.Wrapper)
		}
		// Many that are ended at once must not keep each other from it.
		tick.Reset(max(look, 4*time.Since(began)))
	}
}

// Quiesce implements subprocess.Process.
func (p *process) Quiesce(ctx context.Context) error {
	select {
	case <-p.members.empty():
		return nil
	default:
	}
	select {
	case <-p.members.empty():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done implements subprocess.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Outcome implements subprocess.Process.
func (p *process) Outcome() (subprocess.Outcome, error) {
	<-p.done
	return p.outcome, p.err
}

// Survivors implements subprocess.Process.
func (p *process) Survivors() int {
	select {
	case <-p.done:
		return p.survivors
	default:
		return 0
	}
}

// Stdin implements subprocess.Process.
func (p *process) Stdin() io.WriteCloser {
	if !p.spec.Stdin.Pipe {
		return nil
	}
	return p.stdin
}

// StdoutPipe implements subprocess.Process.
func (p *process) StdoutPipe() io.ReadCloser { return p.stdout.reader() }

// StderrPipe implements subprocess.Process.
func (p *process) StderrPipe() io.ReadCloser { return p.stderr.reader() }

// Stdout implements subprocess.Process.
func (p *process) Stdout() subprocess.Reader { return p.stdout.collected() }

// Stderr implements subprocess.Process.
func (p *process) Stderr() subprocess.Reader { return p.stderr.collected() }

func (e outputEnd) reader() io.ReadCloser {
	if e.pipe == nil {
		return nil
	}
	return e.pipe
}

func (e outputEnd) collected() subprocess.Reader {
	if e.stream == nil {
		return nil
	}
	return e.stream.kept
}

// closeEnds closes our ends of a process that was not started.
func (p *process) closeEnds() {
	for _, f := range []*os.File{p.stdin, p.stdout.pipe, p.stderr.pipe} {
		if f != nil {
			f.Close()
		}
	}
	for _, s := range p.streams() {
		s.close()
	}
}

func outcome(status syscall.WaitStatus) subprocess.Outcome {
	if status.Signaled() {
		return subprocess.Outcome{ExitCode: -1, Signal: unix.SignalName(status.Signal())}
	}
	return subprocess.Outcome{ExitCode: status.ExitStatus()}
}
