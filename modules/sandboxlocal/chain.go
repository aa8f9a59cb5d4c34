package sandboxlocal

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dsh/modules/sandbox"
)

// backend is one way to confine. Its methods may be called concurrently.
type backend interface {
	name() string
	// confine prepares r. A *brokenError says that the backend can confine nothing at present.
	confine(ctx context.Context, r sandbox.Request) (*sandbox.Confined, error)
	// probe returns why the backend does not work, having tried it.
	probe(ctx context.Context) error
	// describe returns what the backend enforces.
	describe() (sandbox.Enforcement, []string)
	// executesFailed says that a command may have been executed although its runner is said to have failed.
	executesFailed() bool
}

// brokenError is a backend that does not work here.
type brokenError struct{ reason string }

func (e *brokenError) Error() string { return e.reason }

// refusalError is a policy that a working backend does not carry out. No other backend is asked: it would enforce less.
type refusalError struct{ reason string }

func (e *refusalError) Error() string { return e.reason }

// retryAfter is how long a backend that did not work is left alone while another one does the work.
const retryAfter = 30 * time.Second

// chain uses the first of its backends that works.
type chain struct {
	log      *slog.Logger
	backends []backend

	mu       sync.Mutex
	verdicts map[string]verdict
}

// verdict is what is known of a backend; the zero value: nothing.
type verdict struct {
	works  bool
	reason string // why it does not work; empty: it was not tried or works
	at     time.Time
}

var _ sandbox.Provider = (*chain)(nil)

// Confine implements sandbox.Provider.
func (c *chain) Confine(ctx context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	unavailable := func(reason string) error {
		return &sandbox.UnavailableError{Mode: r.Policy.Mode, Reason: reason}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.Policy.Validate(); err != nil {
		return nil, unavailable(err.Error())
	}
	if r.Policy.Mode == sandbox.DangerFullAccess {
		return nil, unavailable("danger-full-access is no confinement")
	}
	if len(c.backends) == 0 {
		return nil, unavailable(unsupported)
	}
	// What is opened is what the path leads to, so that is what has to be looked at.
	root, err := filepath.EvalSymlinks(r.Policy.WorkspaceRoot)
	if err != nil {
		return nil, unavailable("workspace: " + err.Error())
	}
	r.Policy.WorkspaceRoot = root
	// Backends that did not work a moment ago are left alone, unless nothing else is left.
	for _, patient := range []bool{true, false} {
		confined, reasons, err := c.first(ctx, r, patient)
		var refusal *refusalError
		switch {
		case ctx.Err() != nil:
			if confined != nil {
				confined.Evidence.Watch().Abandon()
			}
			return nil, context.Cause(ctx)
		case errors.As(err, &refusal):
			return nil, unavailable(refusal.reason)
		case err != nil || confined != nil:
			return confined, err
		case !patient:
			return nil, unavailable(strings.Join(reasons, "; "))
		}
	}
	panic("unreachable: the second round returns")
}

// first prepares r with the first backend that works. Without one it returns why each does not.
func (c *chain) first(ctx context.Context, r sandbox.Request, patient bool) (*sandbox.Confined, []string, error) {
	var reasons []string
	for _, b := range c.backends {
		v := c.verdict(b)
		if v.reason != "" && !(patient && time.Since(v.at) < retryAfter) || v.reason == "" && r.Proven && !v.works {
			v = c.try(ctx, b)
		}
		if v.reason == "" {
			confined, err := b.confine(ctx, r)
			var broken *brokenError
			if errors.As(err, &broken) {
				v = c.judge(b, broken)
			} else {
				if confined != nil {
					confined.Evidence.Failed = c.failed(b)
				}
				return confined, nil, err
			}
		}
		reasons = append(reasons, b.name()+": "+strings.TrimPrefix(v.reason, b.name()+": "))
	}
	return nil, reasons, nil
}

// failed returns what a caller is to call when b's runner did not execute its command.
func (c *chain) failed(b backend) func(context.Context, string) bool {
	return func(ctx context.Context, reason string) bool {
		if b.executesFailed() {
			return false
		}
		v := c.try(ctx, b)
		if v.reason == "" {
			c.log.Warn("a sandbox runner failed that works otherwise", "backend", b.name(), "reason", reason)
		}
		return ctx.Err() == nil
	}
}

// try probes b and remembers what came of it.
func (c *chain) try(ctx context.Context, b backend) verdict {
	err := b.probe(ctx)
	if ctx.Err() != nil {
		return verdict{} // the caller has gone; that says nothing of b
	}
	return c.judge(b, err)
}

func (c *chain) judge(b backend, err error) verdict {
	v := verdict{works: err == nil, at: time.Now()}
	if err != nil {
		v.reason = err.Error()
	}
	c.mu.Lock()
	before := c.verdicts[b.name()]
	if c.verdicts == nil {
		c.verdicts = map[string]verdict{}
	}
	c.verdicts[b.name()] = v
	c.mu.Unlock()
	if v.reason != "" && before.reason != v.reason {
		c.log.Warn("a sandbox backend does not work", "backend", b.name(), "reason", v.reason)
	}
	return v
}

func (c *chain) verdict(b backend) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verdicts[b.name()]
}

// Backends implements sandbox.Provider.
func (c *chain) Backends(ctx context.Context) []sandbox.Backend {
	var all []sandbox.Backend
	chosen := false
	for _, b := range c.backends {
		v := c.try(ctx, b)
		s := sandbox.Backend{Name: b.name(), Usable: v.works, Reason: v.reason}
		if s.Usable {
			s.Chosen, chosen = !chosen, true
			s.Enforcement, s.NotEnforced = b.describe()
		}
		all = append(all, s)
	}
	return all
}
