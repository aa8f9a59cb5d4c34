package composetest

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/fx"

	"dsh/module"
)

// PlainFx starts and stops every row of a composition in one plain fx app, as a host with an fx app of its own mounts
// them, and fails the test when that goes wrong.
func PlainFx(t testing.TB, options ...Option) {
	t.Helper()
	p := MustPlan(t, options...)
	verify := watchLeaks(t)
	defer verify()

	log := logTo(t)
	all := []fx.Option{fx.NopLogger, fx.Provide(func() *slog.Logger { return log })}
	for _, m := range p.Mounts() {
		all = append(all, module.Fx(m.Module, m.Config))
	}
	app := fx.New(all...)
	ctx, cancel := context.WithTimeout(context.Background(), app.StartTimeout()+app.StopTimeout())
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Errorf("start: %v", err)
	}
	if err := app.Stop(ctx); err != nil { // after a failed start too: fx undoes nothing at a deadline
		t.Errorf("stop: %v", err)
	}
}
