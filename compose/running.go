package compose

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"dsh/internal/diag"
)

const (
	stopAll    = 9 * time.Second        // for all rows; with what abandoned rows are given on top and the kill, under 10 s
	killWithin = 400 * time.Millisecond // a host that is told to end at once has 500 ms
)

var errKilled = errors.New("the composition was killed")

// Running is a composition whose rows have started. Its methods may be called from any goroutine.
type Running struct {
	log    *slog.Logger
	stop   func() error
	giveUp context.CancelCauseFunc // ends the start at hand

	mu     sync.Mutex
	rows   []*row // in the order in which they started, the one that is starting included; of the others nothing is to be undone
	values map[reflect.Type]reflect.Value
}

func newRunning(log *slog.Logger, giveUp context.CancelCauseFunc) *Running {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Running{log: log, giveUp: giveUp, values: map[reflect.Type]reflect.Value{}}
	r.stop = sync.OnceValue(r.stopRows)
	return r
}

// Value returns the capability T of a running composition, and false when no row provides it.
func Value[T any](r *Running) (T, bool) {
	v, ok := r.value(reflect.TypeFor[T]())
	if !ok {
		var none T
		return none, false
	}
	return v.Interface().(T), true
}

// Stop stops every row, in reverse, and returns when the last has stopped. Each row has its own budget, and all of them
// together less than 10 s, of which each keeps a share whatever the others do. A row that overruns is abandoned and
// reported, and what it needs is stopped all the same. When anything went wrong Stop ends with Kill. The error joins
// what each row had to say; a second call returns the same.
func (r *Running) Stop() error { return r.stop() }

func (r *Running) stopRows() error {
	r.mu.Lock()
	rows := slices.Clone(r.rows)
	r.mu.Unlock()

	end := time.Now().Add(stopAll)
	var errs diag.List
	for after, w := range slices.Backward(rows) {
		errs.Add(w.stop(share(time.Until(end), w.mount.Module.StopWithin(), after, len(rows))))
	}
	err := errs.Err()
	if err != nil {
		r.Kill()
	}
	return err
}

// share returns how long a row may take to stop when left remains for it and for the rows after it, out of all: its
// budget, but no more than leaves two fifths of an equal part to each of the others.
func share(left, budget time.Duration, after, all int) time.Duration {
	reserve := stopAll * 2 / 5 / time.Duration(all)
	return min(budget, max(left-reserve*time.Duration(after), reserve/2))
}

// Kill is the last resort, for a host that must end at once: whatever the rows own outside of this process is ended,
// without a word to the rows. It returns within half a second, may be called at any time and more than once, and does
// not take the place of Stop. An Apply at work gives up.
func (r *Running) Kill() {
	r.giveUp(errKilled)
	r.mu.Lock()
	rows := slices.Clone(r.rows)
	r.mu.Unlock()

	var all sync.WaitGroup
	for _, w := range rows {
		for _, kill := range w.kills() {
			all.Go(kill)
		}
	}
	done := make(chan struct{})
	go func() { // outlives this call when a row's Kill hangs
		all.Wait()
		close(done)
	}()
	timeout := time.NewTimer(killWithin)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
		r.log.Warn("kill overrun")
	}
}

// construct makes rows of the mounts, one after the other, without waiting for any to be started. After one that fails
// there are no more.
func (r *Running) construct(ctx context.Context, mounts []Mount) <-chan *row {
	rows := make(chan *row, len(mounts)) // it never waits
	go func() {
		defer close(rows)
		for _, m := range mounts {
			w := &row{mount: m, log: r.log.With("row", m.ID)}
			w.construct(ctx, r.value)
			r.mu.Lock()
			for _, v := range w.provided {
				r.values[v.Type()] = v
			}
			r.mu.Unlock()
			rows <- w
			if w.app == nil {
				return
			}
		}
	}()
	return rows
}

// start starts w on top of those that run.
func (r *Running) start(ctx context.Context, w *row) error {
	r.mu.Lock()
	r.rows = append(r.rows, w)
	r.mu.Unlock()
	return w.start(ctx)
}

func (r *Running) value(t reflect.Type) (reflect.Value, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[t]
	return v, ok
}
