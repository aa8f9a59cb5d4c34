//go:build unix

package subprocesslocal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dsh/internal/diag"
	"dsh/internal/dshhome"
	"dsh/module"
	"dsh/modules/internal/procspec"
	"dsh/modules/internal/rundir"
	"dsh/modules/subprocess"
)

// New returns a runtime. Where its files go, DSH_HOME says, which is read here once; the default is ~/.dsh.
func New(p Params) (Result, error) {
	home, err := dshhome.Dir()
	if err != nil {
		return Result{}, err
	}
	id := randomHex(8)
	rt := &local{
		config: p.Config, log: p.Log,
		env:    procspec.NewEnvironment(p.Config.KeepEnv...),
		files:  rundir.New(home, id),
		ranges: newRanges(p.Config, id, p.Log),
		live:   map[*process]struct{}{},
		hurry:  make(chan struct{}),
	}
	rt.hurryAll = sync.OnceFunc(func() { close(rt.hurry) })
	return Result{Runtime: rt, Runner: module.Runner{Start: rt.start, Stop: rt.stop, Kill: rt.ranges.kill}}, nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// local is the runtime.
type local struct {
	config Config
	log    *slog.Logger
	env    *procspec.Environment
	files  *rundir.Dir
	ranges choosing

	commands atomic.Int64
	hurry    chan struct{} // closed when no grace is given any more
	hurryAll func()        // closes it

	endSweep context.CancelFunc
	sweeping sync.WaitGroup

	mu    sync.Mutex
	state state
	null  *os.File // open while started, shared by all commands
	live  map[*process]struct{}
	work  sync.WaitGroup // spawns under way and processes that are not quiescent
}

type state int

const (
	created state = iota
	started
	stopped
)

var (
	_ subprocess.Runtime       = (*local)(nil)
	_ subprocess.RangeReporter = (*local)(nil)
	_ subprocess.Limiter       = (*local)(nil)
)

var errNotStarted = errors.New("the subprocess runtime has not started")

func (rt *local) start(context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	if err := rt.ranges.start(); err != nil {
		return errors.Join(err, null.Close())
	}
	rt.mu.Lock()
	rt.null, rt.state = null, started
	rt.mu.Unlock()

	ctx, cancel := context.WithCancel(context.Background())
	rt.endSweep = cancel
	rt.sweeping.Go(func() {
		keep := time.Duration(rt.config.SpillKeepDays) * 24 * time.Hour
		err := rt.files.Sweep(ctx, keep)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, syscall.EROFS): // as in a sandbox: others will do it
			rt.log.Debug("cannot remove files of ended hosts", "error", err)
		default:
			rt.log.Warn("cannot remove files of ended hosts", "error", err)
		}
	})
	return nil
}

// Spawn implements subprocess.Runtime.
func (rt *local) Spawn(ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
	defer closeFiles(s.ExtraFiles)
	if err := rt.admit(); err != nil {
		return nil, err
	}
	p, err := rt.spawn(ctx, s)
	if err != nil {
		rt.work.Done()
		return nil, err
	}
	return p, nil
}

// admit counts a spawn, so that stop waits for it.
func (rt *local) admit() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch rt.state {
	case created:
		return errNotStarted
	case stopped:
		return subprocess.ErrStopped
	}
	rt.work.Add(1)
	return nil
}

func (rt *local) spawn(ctx context.Context, s subprocess.Spec) (subprocess.Process, error) {
	if err := procspec.Validate(ctx, s); err != nil {
		return nil, err
	}
	path, err := rt.env.Resolve(ctx, procspec.Program(s))
	if err != nil {
		return nil, err
	}
	p, err := rt.launch(s, path)
	if err != nil {
		return nil, err
	}
	p.unwatch = context.AfterFunc(ctx, p.Terminate)

	rt.mu.Lock()
	rt.live[p] = struct{}{}
	late := rt.state == stopped
	rt.mu.Unlock()
	go func() {
		defer rt.work.Done()
		p.live()
		rt.mu.Lock()
		defer rt.mu.Unlock()
		delete(rt.live, p)
	}()
	if late {
		// Stop may have listed the live processes before this one was among them.
		p.Terminate()
	}
	return p, nil
}

// ResolveExecutable implements subprocess.Runtime.
func (rt *local) ResolveExecutable(ctx context.Context, name string) (string, error) {
	return rt.env.Resolve(ctx, name)
}

// Withhold implements subprocess.Runtime.
func (rt *local) Withhold(names ...string) (undo func()) { return rt.env.Withhold(names...) }

// Range implements subprocess.Runtime.
func (rt *local) Range() subprocess.RangeKind { return rt.ranges.kind() }

// AllowLimits implements subprocess.Limiter.
func (rt *local) AllowLimits(l subprocess.Limits) error { return rt.ranges.allow(l) }

// Ranges implements subprocess.RangeReporter.
func (rt *local) Ranges() []subprocess.RangeVerdict { return rt.ranges.report() }

// stop ends every command. Where a grace is longer than the budget, KILL comes early rather than the budget to an end.
func (rt *local) stop(ctx context.Context) error {
	rt.mu.Lock()
	rt.state = stopped
	live := make([]*process, 0, len(rt.live))
	for p := range rt.live {
		live = append(live, p)
	}
	rt.mu.Unlock()

	for _, p := range live {
		p.Terminate()
	}
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		early := time.AfterFunc(left-min(left/4, time.Second), rt.hurryAll)
		defer early.Stop()
	}
	var errs diag.List
	for _, p := range live {
		if err := p.Quiesce(ctx); err != nil {
			rt.ranges.kill()
			errs.Add(fmt.Errorf("%s: still running: %w", p.spec.Argv[0], err))
			continue
		}
		if _, err := p.Outcome(); err != nil {
			errs.Add(fmt.Errorf("%s: %w", p.spec.Argv[0], err))
		}
	}
	if err := wait(ctx, rt.work.Wait); err != nil {
		rt.ranges.kill()
		errs.Add(err)
	}
	errs.Add(rt.ranges.stop(ctx))

	if rt.endSweep != nil {
		rt.endSweep()
		rt.sweeping.Wait()
	}
	errs.Add(rt.files.Close())
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.null != nil {
		errs.Add(rt.null.Close())
		rt.null = nil
	}
	return errs.Err()
}

// wait calls f and returns when it does, or with the cause when ctx ends first.
func wait(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
