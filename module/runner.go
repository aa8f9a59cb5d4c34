package module

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/fx"
)

// Runner is the active part of a row. A constructor that needs one returns it as a field of its fx.Out result; Define
// keeps it out of what the module provides.
//
// Start and Stop are called at most once each, Stop only after Start returned nil, however late that was. A start's
// context ends with the row's budget or when the host gives the start up; a stop's context ends with the row's budget
// alone. Both are for the call: they end when it returns. What Start registered elsewhere, Stop takes back.
type Runner struct {
	Start func(context.Context) error // nil: nothing to do
	Stop  func(context.Context) error // nil: nothing to do

	// Kill is the last resort, for a host that must end while this row could not be stopped. It may be called at any
	// time, from any goroutine, more than once; it returns within milliseconds, having ended whatever outside of this
	// process the row owns.
	Kill func()
}

// DefaultBudget is how long a row may take to start or to stop when its Spec does not say.
const DefaultBudget = 5 * time.Second

// Registration adds something to a registry of another row and returns what takes it back.
type Registration func() (undo func(), err error)

// Registering returns a Runner that makes the registrations, in order, when its row starts and takes them back, the last
// one first, when it stops. When one is refused those before it are taken back and its error is the start's.
func Registering(registrations ...Registration) Runner {
	var undo []func()
	takeBack := func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
		undo = nil
	}
	return Runner{
		Start: func(context.Context) error {
			made := false
			defer func() {
				if !made { // also when one panicked
					takeBack()
				}
			}()
			for _, register := range registrations {
				f, err := register()
				if err != nil {
					return err
				}
				undo = append(undo, f)
			}
			made = true
			return nil
		},
		Stop: func(context.Context) error {
			takeBack()
			return nil
		},
	}
}

// hook returns the fx hook of r, each call within its budget. A stop is not ended by whoever asked for it.
func (r Runner) hook(startWithin, stopWithin time.Duration) fx.Hook {
	var h fx.Hook
	if r.Start != nil {
		h.OnStart = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, startWithin)
			defer cancel()
			return r.Start(ctx)
		}
	}
	if r.Stop != nil {
		h.OnStop = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			return r.Stop(ctx)
		}
	}
	return h
}

// contained returns r with panics turned into errors: one row's bug is reported like any other failure, and the rest is
// still stopped.
func (r Runner) contained() Runner {
	c := Runner{Start: contained("start", r.Start), Stop: contained("stop", r.Stop)}
	if r.Kill != nil {
		c.Kill = func() {
			defer func() { _ = recover() }() // a host that must end has nobody to tell
			r.Kill()
		}
	}
	return c
}

// PanicError is a panic inside a module's hook or constructor, with the stack of the goroutine that panicked.
type PanicError struct {
	During string // "start", "stop" or "new"
	Value  any
	Stack  []byte
}

// Error returns what was being done and the panic's value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic during %s: %v", e.During, e.Value) }

func contained(during string, f func(context.Context) error) func(context.Context) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{During: during, Value: v, Stack: debug.Stack()}
			}
		}()
		return f(ctx)
	}
}
