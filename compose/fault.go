package compose

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dsh/internal/diag"
	"dsh/module"
)

// rowError is a row that could not start or stop: a diagnostic, and the errors behind it.
type rowError struct {
	diagnostic *diag.Diagnostic
	causes     []error
}

// Error returns the diagnostic's one line.
func (e *rowError) Error() string { return e.diagnostic.Error() }

// Report returns the diagnostic as a person reads it.
func (e *rowError) Report() string { return e.diagnostic.Report() }

// Unwrap returns the diagnostic, then the causes.
func (e *rowError) Unwrap() []error { return append([]error{e.diagnostic}, e.causes...) }

// fault says what a start or stop failed with, given the context that it had. Its slug is the phase, or the phase with
// -timeout for a budget overrun.
func (w *row) fault(phase string, ctx context.Context, budget time.Duration, err error) error {
	d := &diag.Diagnostic{Place: w.mount.Place, Row: w.mount.ID, Slug: phase, Message: phase + ": " + err.Error()}
	e := &rowError{diagnostic: d, causes: []error{err}}
	if f := fieldError(err); f != nil && w.mount.node != nil { // what the machine cannot do is known only now
		if place, set := setAt(w.mount.node, f.Key); set {
			d.Place, d.Message = place, phase+": "+strings.ReplaceAll(redact(err.Error(), w.mount.node), "\n", "; ")
		}
	}

	if p, ok := errors.AsType[*module.PanicError](err); ok {
		d.Message = fmt.Sprintf("%s: panic: %v", phase, p.Value)
		w.log.Debug("panic", "during", p.During, "stack", string(p.Stack))
		return e
	}
	cause := context.Cause(ctx)
	if cause == nil {
		return e
	}
	bare := err == ctx.Err() || err == cause || err == errAbandoned
	if cause == errBudget {
		if !bare && !errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
			return e // it failed in its own way as its time ran out
		}
		d.Slug += "-timeout"
		if bare {
			d.Message = fmt.Sprintf("%s: still busy after %v", phase, budget.Round(10*time.Millisecond))
		}
		if phase == "stop" {
			d.Hint = "what it needs was stopped anyway"
		}
		return e
	}
	if bare {
		d.Message = fmt.Sprintf("%s: given up: %v", phase, cause)
	}
	e.causes = append(e.causes, cause) // who ended the start decides the host's exit code
	return e
}
