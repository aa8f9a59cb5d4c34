package compose

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"go.uber.org/fx"

	"dsh/internal/diag"
	"dsh/module"
)

// startRespite is how long a start may take to return once its context has ended, before it is abandoned.
const startRespite = time.Second

// row is one mounted row with its fx app. It is constructed, started and stopped one after the other, by one goroutine at
// a time.
//
// fx never sees a context that ends: once one has, it skips the hooks that remain to be stopped and believes the app to
// be stopped. The budgets are kept around each Runner instead, by supervise.
type row struct {
	mount Mount
	log   *slog.Logger

	app          *fx.App         // nil unless constructed
	provided     []reflect.Value // the capabilities
	constructErr error
	startWithin  time.Duration   // what the construction has left of the budget
	starting     context.Context // of the start at hand

	started    bool          // or it was tried
	stopWithin time.Duration // of the stop at hand; 0: it undoes a start, and has the module's budget
	stopBy     time.Time
	startErr   error
	stopErrs   diag.List

	mu      sync.Mutex
	runners []module.Runner // as the constructor returned them, for kills
}

// construct builds the row's app out of its module, its configuration, and what it needs, as far as it is there. If that
// fails, start says so.
func (w *row) construct(ctx context.Context, have func(reflect.Type) (reflect.Value, bool)) {
	budget, began := w.mount.Module.StartWithin(), time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, budget, errBudget)
	defer cancel()
	var app *fx.App
	var provided []reflect.Value
	err := within(ctx, startRespite, func(context.Context) error {
		app = fx.New(
			fx.WithLogger(w.events),
			fx.Provide(constant(w.supplied(have))),
			w.mount.Module.Options(module.Observer{
				Supervise: w.supervise,
				Provided:  func(values []reflect.Value) { provided = values },
			}))
		return app.Err()
	}, nil)
	if err != nil {
		w.constructErr = w.fault("start", ctx, budget, constructorError(err))
		return
	}
	w.app, w.provided, w.startWithin = app, provided, budget-time.Since(began)
}

// supplied returns what the row's app is given.
func (w *row) supplied(have func(reflect.Type) (reflect.Value, bool)) []reflect.Value {
	all := []reflect.Value{reflect.ValueOf(w.log), reflect.ValueOf(w.mount.Config)}
	for _, need := range w.mount.Module.Needs() {
		if v, ok := have(need.Type); ok {
			all = append(all, v)
		}
	}
	return all
}

// start runs the starts of a row that was constructed. What had started of a row that fails is stopped again.
func (w *row) start(ctx context.Context) error {
	if w.constructErr != nil {
		return w.constructErr
	}
	budget := w.mount.Module.StartWithin()
	ctx, cancel := context.WithTimeoutCause(ctx, w.startWithin, errBudget)
	defer cancel()
	w.starting, w.started = ctx, true
	if err := w.app.Start(context.Background()); err != nil {
		if w.startErr != nil {
			err = w.startErr // without what fx joined to it
		}
		return diag.Collect(w.fault("start", ctx, budget, err), w.takeStopErrs())
	}
	if ctx.Err() != nil {
		return w.fault("start", ctx, budget, context.Cause(ctx))
	}
	return nil
}

// constant returns a function without parameters that returns the values. fx looks at the call stack for each function
// that it is given, which makes one for all of them a good deal cheaper than one for each.
func constant(values []reflect.Value) any {
	types := make([]reflect.Type, len(values))
	for i, v := range values {
		types[i] = v.Type()
	}
	return reflect.MakeFunc(reflect.FuncOf(nil, types, false), func([]reflect.Value) []reflect.Value { return values }).Interface()
}

// supervise returns r with its start and its stop bound to those at hand of the row: both return in time, whatever r does.
func (w *row) supervise(r module.Runner) module.Runner {
	w.mu.Lock()
	w.runners = append(w.runners, r)
	w.mu.Unlock()

	var s module.Runner
	if r.Start != nil {
		s.Start = func(context.Context) error {
			w.startErr = within(w.starting, startRespite, r.Start, func(err error) { w.startedLate(r, err) })
			return w.startErr
		}
	}
	if r.Stop != nil {
		s.Stop = func(context.Context) error {
			budget := w.mount.Module.StopWithin()
			if w.stopWithin > 0 { // a twentieth remains when another Runner of the row has used it up
				budget = max(time.Until(w.stopBy), w.stopWithin/20)
			}
			return stopRunner(r, budget, func(ctx context.Context, err error) {
				w.stopErrs.Add(w.fault("stop", ctx, budget, err))
			})
		}
	}
	return s
}

// stopRunner stops r within budget and a twentieth of it, and tells failed of a failure.
func stopRunner(r module.Runner, budget time.Duration, failed func(context.Context, error)) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), budget, errBudget)
	defer cancel()
	err := within(ctx, budget/20, r.Stop, nil)
	if err != nil {
		failed(ctx, err)
	}
	return err
}

// startedLate ends what an abandoned start has left running when it returned after all. What the row needs may have been
// stopped by then, and nobody waits for it any more.
func (w *row) startedLate(r module.Runner, err error) {
	w.log.Info("abandoned start returned", "error", err)
	if err != nil || r.Stop == nil {
		return
	}
	failed := func(_ context.Context, err error) {
		w.log.Warn("late stop failed", "error", err)
		if r.Kill != nil {
			r.Kill()
		}
	}
	_ = stopRunner(r, w.mount.Module.StopWithin(), failed)
}

// stop stops what is started of the row, within budget.
func (w *row) stop(budget time.Duration) error {
	if !w.started {
		return nil
	}
	w.stopWithin, w.stopBy = budget, time.Now().Add(budget)
	err := w.app.Stop(context.Background())
	if told := w.takeStopErrs(); told != nil {
		return told
	}
	if err != nil {
		return w.fault("stop", context.Background(), budget, err)
	}
	return nil
}

func (w *row) takeStopErrs() error {
	err := w.stopErrs.Err()
	w.stopErrs = diag.List{}
	return err
}

// kills returns the last resorts of the row.
func (w *row) kills() (fs []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runners {
		if r.Kill != nil {
			fs = append(fs, r.Kill)
		}
	}
	return fs
}

// constructorError returns what the constructor itself said, out of what fx says about it.
func constructorError(err error) error {
	if ce, ok := errors.AsType[*module.ConstructorError](err); ok {
		return ce.Err
	}
	return err
}
