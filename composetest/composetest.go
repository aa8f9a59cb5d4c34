package composetest

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dsh/compose"
	"dsh/module"
)

// Option is a part of a composition. Options apply in the order in which they are given.
type Option func(*composition)

// With adds bundles: their modules and their patches.
func With(bundles ...module.Bundle) Option {
	return func(c *composition) { c.bundles = append(c.bundles, bundles...) }
}

// Patch applies a patch on top of what comes before it.
func Patch(yaml string) Option {
	return func(c *composition) { c.patches = append(c.patches, yaml) }
}

// Set sets one key of a row's config, as `--set ID.PATH=VALUE` does: over every patch.
func Set(expression string) Option {
	return func(c *composition) { c.sets = append(c.sets, expression) }
}

// Replace takes a row out of the composition and mounts m in its stead, as the row `<id>-replacement`, with m's default
// configuration. If a bundle has a module of m's name, m takes its place.
func Replace(id string, m module.Module) Option {
	return func(c *composition) {
		c.modules = append(c.modules, m)
		c.patches = append(c.patches, fmt.Sprintf("- id: %[1]q\n  disabled: true\n- insert:\n    - id: %[2]q\n      name: %[3]q\n",
			id, id+"-replacement", m.Name()))
	}
}

// For makes the plan for another machine than the one that the test runs on.
func For(change func(*compose.Machine)) Option {
	return func(c *composition) { c.changes = append(c.changes, change) }
}

// composition is what the options of a test say.
type composition struct {
	bundles []module.Bundle
	modules []module.Module // replacements
	patches []string
	sets    []string
	changes []func(*compose.Machine)
}

// Plan makes the plan of a composition. The user's own layers have no part in it. A test that does not run in parallel
// gets a DSH_HOME of its own first; one that does shares that of the process.
func Plan(t testing.TB, options ...Option) (*compose.Plan, error) {
	t.Helper()
	var c composition
	for _, o := range options {
		o(&c)
	}
	setenv(t, "DSH_HOME", filepath.Join(t.TempDir(), "home"))

	dir := t.TempDir()
	var files []string
	for i, text := range c.patches {
		name := fmt.Sprintf("patch-%d.yaml", i+1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	machine, err := compose.ThisMachine()
	if err != nil {
		return nil, err
	}
	for _, change := range c.changes {
		change(&machine)
	}
	registry, err := module.NewRegistry(c.allModules()...)
	if err != nil {
		return nil, err
	}
	layers := compose.Load(compose.Inputs{Bundles: c.bundles, Patches: files, Dir: dir, Sets: c.sets})
	return compose.MakePlan(layers, registry, machine, compose.FoldOptions{})
}

// allModules returns the bundles with the replacements in place of modules that have their names.
func (c *composition) allModules() []module.Bundle {
	bundles := slices.Clone(c.bundles)
	for i := range bundles {
		bundles[i].Modules = slices.DeleteFunc(slices.Clone(bundles[i].Modules), func(m module.Module) bool {
			return slices.ContainsFunc(c.modules, func(r module.Module) bool { return r.Name() == m.Name() })
		})
	}
	return append(bundles, module.Bundle{Name: "composetest", Modules: c.modules})
}

// Start runs a composition until the test ends, and fails the test at once when it cannot be planned or started. Rows
// log to the test's output.
func Start(t testing.TB, options ...Option) *compose.Running {
	t.Helper()
	return Apply(t, MustPlan(t, options...))
}

// MustPlan is Plan for a composition without faults; with one it fails the test at once.
func MustPlan(t testing.TB, options ...Option) *compose.Plan {
	t.Helper()
	p, err := Plan(t, options...)
	if err != nil {
		t.Fatalf("plan:\n%s", report(err))
	}
	return p
}

// Apply is Start for a plan that is made already.
func Apply(t testing.TB, p *compose.Plan) *compose.Running {
	t.Helper()
	verify := watchLeaks(t)
	r, err := compose.Apply(t.Context(), p, compose.RunOptions{Log: logTo(t)})
	t.Cleanup(func() {
		if r != nil {
			if err := r.Stop(); err != nil {
				t.Errorf("stop:\n%s", report(err))
			}
		}
		verify()
	})
	if err != nil {
		t.Fatalf("start:\n%s", report(err))
	}
	return r
}

// Value returns a capability that a row of r provides, and fails the test at once when none does.
func Value[T any](t testing.TB, r *compose.Running) T {
	t.Helper()
	v, ok := compose.Value[T](r)
	if !ok {
		t.Fatalf("no row provides %T", (*T)(nil))
	}
	return v
}

// report returns what a person would read of err and of what it joins.
func report(err error) string {
	switch e := err.(type) {
	case interface{ Report() string }:
		return e.Report()
	case interface{ Unwrap() []error }:
		var all []string
		for _, err := range e.Unwrap() {
			all = append(all, report(err))
		}
		return strings.Join(all, "\n")
	}
	return err.Error()
}

// logTo returns a logger to the test's output, which takes nothing any more once the test has ended: a row that was
// abandoned may still have something to say then.
func logTo(t testing.TB) *slog.Logger {
	w := &output{w: t.Output()}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, nil))
}

type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}
