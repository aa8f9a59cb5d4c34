package bashlocal_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/bashlocal"
	"dsh/modules/shell"
	"dsh/modules/shell/shelltest"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

func TestMain(m *testing.M) { os.Exit(testkit.Checked{Tests: ownHome{m}}.Run()) }

// ownHome runs tests with a directory of their own for what runtimes write.
type ownHome struct{ tests *testing.M }

func (h ownHome) Run() int {
	dir, err := os.MkdirTemp("", "bashlocal-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("DSH_HOME", dir)
	return h.tests.Run()
}

// runtime returns a runtime that is stopped, with all it owns, at the end of the test.
func runtime(tb testing.TB) subprocess.Runtime {
	tb.Helper()
	return runtimeWith(tb, subprocesslocal.DefaultConfig())
}

func runtimeWith(tb testing.TB, c subprocesslocal.Config) subprocess.Runtime {
	tb.Helper()
	r, err := subprocesslocal.New(subprocesslocal.Params{Config: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	if r.Runner.Start != nil {
		if err := r.Runner.Start(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Runner.Stop(ctx); err != nil {
			tb.Errorf("stop of the runtime: %v", err)
		}
	})
	return r.Runtime
}

// started returns an executor over r whose row has started, with the default configuration as edit leaves it.
func started(tb testing.TB, r subprocess.Runtime, edit func(*bashlocal.Config)) shell.Executor {
	tb.Helper()
	c := bashlocal.DefaultConfig()
	if edit != nil {
		edit(&c)
	}
	x, err := bashlocal.New(bashlocal.Params{Config: c, Runtime: r})
	if err != nil {
		tb.Fatal(err)
	}
	if err := x.Run.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return x.Executor
}

func TestConformance(t *testing.T) {
	t.Parallel()
	shelltest.Run(t, func(tb testing.TB) shell.Executor { return started(tb, runtime(tb), nil) }, shelltest.Options{Ranges: true})
}
