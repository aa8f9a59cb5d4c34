package bashsandbox

import (
	"context"
	"sync"
	"time"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
)

// Start implements shell.Executor. It confines with what has been seen to work: nobody waits for the command's end to
// confine it again.
func (x *executor) Start(ctx context.Context, s shell.Spec) (shell.Process, error) {
	p, err := policy(s)
	if err != nil {
		return nil, err
	}
	if p.Mode == sandbox.DangerFullAccess {
		return x.bash.Start(ctx, s, nil)
	}
	for n := 1; ; n++ {
		c := &confinement{provider: x.sandbox, policy: p, proven: true}
		started, err := x.bash.Start(ctx, s, c.prepare)
		if err == nil {
			if !c.awaits(ctx, started) {
				return watched(started, c), nil
			}
			// The runner has failed, or the caller has gone; either way nothing is left of it that anybody wants.
			started.Kill()
			<-started.Done()
			st := started.Status()
			v := c.end(st.ExitCode, st.Signal, ctx.Err() != nil)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case n < attempts && c.confined.Evidence.Failed != nil && c.confined.Evidence.Failed(ctx, v.Reason):
				continue
			}
			return nil, unavailable(p.Mode, v.Reason)
		}
		if ctx.Err() != nil || c.confined == nil {
			if c.watch != nil {
				c.watch.Abandon()
			}
			return nil, err
		}
		_, reason, failed := c.judge(shell.Result{}, err)
		if !failed {
			return nil, err
		}
		if n == attempts || c.confined.Evidence.Failed == nil || !c.confined.Evidence.Failed(ctx, reason) {
			return nil, unavailable(p.Mode, reason)
		}
	}
}

// patience bounds how long a runner may take to make a sandbox before it is left to itself.
const patience = 10 * time.Second

// awaits waits until the runner has made the sandbox, and reports whether it failed to, or the caller has gone meanwhile.
func (c *confinement) awaits(ctx context.Context, p shell.Process) bool {
	underway := c.confined.Evidence.Underway
	if underway == nil {
		return false
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end) && !underway(); {
		select {
		case <-p.Done():
			st := p.Status()
			return c.end(st.ExitCode, st.Signal, false).RunnerFailed
		case <-ctx.Done():
			return true
		case <-tick.C:
		}
	}
	return false
}

// process is a started command in its sandbox.
type process struct {
	shell.Process
	confinement *confinement

	once  sync.Once
	facts *sandbox.Facts
}

func watched(p shell.Process, c *confinement) *process {
	w := &process{Process: p, confinement: c}
	// It ends with the process, which belongs to the runtime: nothing of this row has to wait for it.
	go func() {
		<-p.Done()
		w.settle(p.Status())
	}()
	return w
}

// Status implements shell.Process.
func (p *process) Status() shell.Status {
	s := p.Process.Status()
	select {
	case <-p.Done():
		p.settle(s)
		s.Sandbox = p.facts
	default:
	}
	return s
}

// settle reads the end, once.
func (p *process) settle(s shell.Status) {
	p.once.Do(func() {
		v := p.confinement.end(s.ExitCode, s.Signal, s.State == shell.Killed)
		p.facts = p.confinement.facts(v)
	})
}
