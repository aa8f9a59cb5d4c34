package bashexec

import (
	"context"
	"sync"

	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Start is shell.Executor's, with a preparation; nil: none.
func (e *Executor) Start(ctx context.Context, s shell.Spec, prepare Prepare) (shell.Process, error) {
	sub, err := e.request(s)
	if err != nil {
		return nil, err
	}
	p, err := e.spawn(ctx, sub, prepare)
	if err != nil {
		return nil, err
	}
	if e.terminatesWhatSurvives {
		// It ends with the process, which belongs to the runtime: nothing of this row has to wait for it.
		go func() {
			<-p.Done()
			p.Terminate()
		}()
	}
	return &process{
		sub:    p,
		stdout: cursor{reader: p.Stdout(), kept: s.StdoutMaxBytes},
		stderr: cursor{reader: p.Stderr(), kept: e.maxOutput},
	}, nil
}

// process is a started command.
type process struct {
	sub subprocess.Process

	mu     sync.Mutex
	killed bool

	reading        sync.Mutex
	stdout, stderr cursor
}

var _ shell.Process = (*process)(nil)

func (p *process) Done() <-chan struct{} { return p.sub.Done() }

func (p *process) Quiesce(ctx context.Context) error { return p.sub.Quiesce(ctx) }

func (p *process) Status() shell.Status {
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	if !closed(p.sub.Done()) {
		if killed {
			return shell.Status{State: shell.Killed}
		}
		return shell.Status{State: shell.Running}
	}
	o, err := p.sub.Outcome()
	if err != nil {
		return shell.Status{State: shell.Killed, Err: err}
	}
	st := shell.Status{State: shell.Completed}
	st.ExitCode, st.Signal = ending(o)
	if killed || st.Signal != nil {
		st.State = shell.Killed
	}
	return st
}

func (p *process) Kill() bool {
	p.mu.Lock()
	running := !p.killed && !closed(p.sub.Done())
	if running {
		p.killed = true
	}
	p.mu.Unlock()
	p.sub.Terminate() // also what goes on after its command
	return running
}

func (p *process) Hurry() { p.sub.Hurry() }

func (p *process) ReadOutput() shell.Delta {
	p.reading.Lock()
	defer p.reading.Unlock()
	// Asked before reading: what is read after the end is all there will be.
	ended := closed(p.sub.Done())
	var d shell.Delta
	var lossyOut, lossyErr bool
	d.Stdout, d.StdoutSpillPath, lossyOut = p.stdout.next(ended)
	d.Stderr, d.StderrSpillPath, lossyErr = p.stderr.next(ended)
	d.Lossy = lossyOut || lossyErr
	return d
}

// cursor is a place in a stream.
type cursor struct {
	reader subprocess.Reader
	kept   int64
	offset int64
}

// next returns the stream from the cursor to its present end. Before the stream has ended, the beginning of a character
// at its end is left for the next call.
func (c *cursor) next(ended bool) (delta, spillPath string, lossy bool) {
	p, offset, lossy := c.reader.ReadAt(c.offset)
	if lossy {
		p = fromBoundary(p)
	}
	if !ended {
		held := incomplete(p)
		p, offset = p[:len(p)-held], offset-int64(held)
	}
	c.offset = offset
	if offset > c.kept {
		spillPath = c.reader.Collected().SpillPath
	}
	return text(p), spillPath, lossy
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
