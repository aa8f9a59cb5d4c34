package toolslocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/approval"
	"dsh/modules/tools"
)

// Params is what the registry is made from.
type Params struct {
	fx.In
	Log      *slog.Logger
	Approval approval.Service `optional:"true"` // without it, what is to be asked is denied
}

// Result is what the row provides.
type Result struct {
	fx.Out
	Registry tools.Registry
}

// Module returns the module tools-local.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "tools-local",
		Aliases:     []string{"@deepseek-ai/dsh-tools"},
		Summary:     "registers tools and carries their calls from arguments to text",
		Constructor: New,
	})
}

// New returns an empty registry.
func New(p Params) Result { return Result{Registry: &registry{log: p.Log, approval: p.Approval}} }

var _ tools.Registry = (*registry)(nil)

type registry struct {
	log      *slog.Logger
	approval approval.Service // nil: there is none

	// The lists are replaced, never changed: a call goes on with what it began with.
	mu          sync.RWMutex
	definitions []*tools.Definition
	before      []*tools.BeforeHook
	after       []*tools.AfterHook
}

func (r *registry) Register(d tools.Definition) (func(), error) {
	if err := check(d); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.definitions, func(o *tools.Definition) bool { return o.Name == d.Name }) {
		return nil, fmt.Errorf("tool %q is already registered", d.Name)
	}
	return add(&r.mu, &r.definitions, &d), nil
}

func check(d tools.Definition) error {
	switch {
	case d.Name == "":
		return errors.New("a tool must have a name")
	case d.Output == nil || d.Render == nil:
		return fmt.Errorf("tool %q must declare output { schema, render }", d.Name)
	case d.Execute == nil:
		return fmt.Errorf("tool %q must declare execute", d.Name)
	case d.Parameters == nil || d.Parameters.Type != "object":
		return fmt.Errorf("tool %q must declare parameters of type object", d.Name)
	}
	if err := d.Parameters.Check("parameters"); err != nil {
		return fmt.Errorf("tool %q: %w", d.Name, err)
	}
	if err := d.Output.Check("output"); err != nil {
		return fmt.Errorf("tool %q: %w", d.Name, err)
	}
	return nil
}

func (r *registry) Definitions() []tools.Definition {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ds := make([]tools.Definition, len(r.definitions))
	for i, d := range r.definitions {
		ds[i] = *d
	}
	return ds
}

func (r *registry) BeforeExecute(h tools.BeforeHook) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	return add(&r.mu, &r.before, &h)
}

func (r *registry) AfterExecute(h tools.AfterHook) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	return add(&r.mu, &r.after, &h)
}

// add appends v to list, which mu guards and the caller has locked, and returns what takes v, by identity, out again.
func add[T any](mu *sync.RWMutex, list *[]*T, v *T) func() {
	*list = append(slices.Clip(*list), v)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(o *T) bool { return o == v })
	}
}

func (r *registry) Execute(ctx context.Context, e tools.Execution) tools.Result {
	r.mu.RLock()
	c := call{log: r.log, approval: r.approval, before: r.before, after: r.after}
	for _, d := range r.definitions {
		if d.Name == e.Name {
			c.tool = d
		}
	}
	r.mu.RUnlock()
	return c.run(ctx, e)
}
