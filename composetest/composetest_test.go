package composetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"testing"

	"dsh/compose"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/module"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type greeter interface{ Greet() string }

type greeting string

func (g greeting) Greet() string { return string(g) }

type config struct {
	Text string `koanf:"text" doc:"what to say"`
}

type empty struct{}

func greets(name string) module.Module {
	return module.Define(module.Spec[config]{
		Name: name, Default: func() config { return config{Text: name + " says hello"} },
		Constructor: func(c config) greeter { return greeting(c.Text) },
	})
}

// runs makes a module that needs a greeter and does r.
func runs(name string, r module.Runner) module.Module {
	return module.Define(module.Spec[empty]{Name: name, Constructor: func(greeter) module.Runner { return r }})
}

func bundle(r module.Runner) module.Bundle {
	return module.Bundle{
		Name: "greetings", File: "greetings.yaml",
		Patch:   []byte("- insert:\n    - id: user\n      name: user\n    - id: greeter\n      name: polite\n"),
		Modules: []module.Module{greets("polite"), greets("rude"), runs("user", r)},
	}
}

func TestStartRunsACompositionUntilTheTestEnds(t *testing.T) {
	var did []string
	b := bundle(module.Runner{
		Start: func(context.Context) error { did = append(did, "start"); return nil },
		Stop:  func(context.Context) error { did = append(did, "stop"); return nil },
	})
	t.Run("as the bundles say", func(t *testing.T) {
		r := composetest.Start(t, composetest.With(b))
		if got := composetest.Value[greeter](t, r).Greet(); got != "polite says hello" {
			t.Errorf("got %q", got)
		}
		if got := strings.Join(did, " "); got != "start" {
			t.Errorf("while it runs: %s", got)
		}
	})
	if got := strings.Join(did, " "); got != "start stop" {
		t.Errorf("after it: %s", got)
	}
}

func TestOptionsChangeTheComposition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []composetest.Option
		want    string
	}{
		"a patch":                             {[]composetest.Option{composetest.Patch("- id: greeter\n  config: {text: patched}\n")}, "patched"},
		"the later of two patches":            {[]composetest.Option{composetest.Patch("- id: greeter\n  config: {text: one}\n"), composetest.Patch("- id: greeter\n  config: {text: two}\n")}, "two"},
		"a set":                               {[]composetest.Option{composetest.Set("greeter.text=set")}, "set"},
		"a module of a stranger":              {[]composetest.Option{composetest.Replace("greeter", greets("strange"))}, "strange says hello"},
		"a module of the bundle":              {[]composetest.Option{composetest.Replace("greeter", greets("rude"))}, "rude says hello"},
		"a module with the name of the row's": {[]composetest.Option{composetest.Replace("greeter", greets("polite"))}, "polite says hello"},
		"a replacement with a configuration":  {[]composetest.Option{composetest.Replace("greeter", greets("strange")), composetest.Patch("- id: greeter-replacement\n  config: {text: tuned}\n")}, "tuned"},
		"an expression, for another machine":  {[]composetest.Option{composetest.Patch("- id: greeter\n  config: {text: !!js process.platform}\n"), composetest.For(func(m *compose.Machine) { m.Platform = "win32" })}, "win32"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := composetest.Start(t, append([]composetest.Option{composetest.With(bundle(module.Runner{}))}, c.options...)...)
			if got := composetest.Value[greeter](t, r).Greet(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEveryRowStartsInAPlainFxAppToo(t *testing.T) {
	var did []string
	composetest.PlainFx(t, composetest.With(bundle(module.Runner{
		Start: func(context.Context) error { did = append(did, "start"); return nil },
		Stop:  func(context.Context) error { did = append(did, "stop"); return nil },
	})))
	if got := strings.Join(did, " "); got != "start stop" {
		t.Errorf("got %s", got)
	}
}

// The tests below are about tests that fail.

// inParallel is a test that runs beside others.
type inParallel struct{ testing.TB }

func (inParallel) Setenv(string, string) { panic("parallel") }

// outcome returns what goes wrong in test.
func outcome(t *testing.T, parallel bool, test func(testing.TB)) string {
	t.Helper()
	return strings.Join(testkit.Faults(t, func(tb testing.TB) {
		if parallel {
			tb = inParallel{tb}
		}
		test(tb)
	}), "\n")
}

func start(options ...composetest.Option) func(testing.TB) {
	return func(t testing.TB) { composetest.Start(t, options...) }
}

func TestAFaultFailsTheTest(t *testing.T) {
	stuck := module.Runner{Stop: func(context.Context) error { return errors.New("stuck") }}
	broken := module.Runner{Start: func(context.Context) error { return errors.New("broken") }}
	for name, c := range map[string]struct {
		test func(testing.TB)
		says string
	}{
		"in the plan":            {start(composetest.With(bundle(module.Runner{})), composetest.Patch("- id: greter\n  disabled: true\n")), "greter"},
		"in a replacement's row": {start(composetest.With(bundle(module.Runner{})), composetest.Replace("gone", greets("strange"))), "gone"},
		"at start":               {start(composetest.With(bundle(broken))), "start: broken"},
		"at stop":                {start(composetest.With(bundle(stuck))), "stop: stuck"},
		"at start, in plain fx":  {func(t testing.TB) { composetest.PlainFx(t, composetest.With(bundle(broken))) }, "start: broken"},
		"at stop, in plain fx":   {func(t testing.TB) { composetest.PlainFx(t, composetest.With(bundle(stuck))) }, "stop: stuck"},
		"in what the test asks for": {func(t testing.TB) {
			composetest.Value[fmt.Stringer](t, composetest.Start(t, composetest.With(bundle(module.Runner{}))))
		}, "no row provides *fmt.Stringer"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, false, c.test); !strings.Contains(got, c.says) {
				t.Errorf("got %q, want something about %q", got, c.says)
			}
		})
	}
}

func TestAGoroutineLeftBehindFailsItsTest(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		t.Run(fmt.Sprintf("parallel=%v", parallel), func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			release := make(chan struct{})
			defer close(release)
			leaky := bundle(module.Runner{Start: func(context.Context) error {
				go func() { <-release }()
				return nil
			}})
			tidy := bundle(module.Runner{})
			got := outcome(t, parallel, func(t testing.TB) {
				composetest.Start(t, composetest.With(leaky))
			})
			if !strings.Contains(got, "goroutines left behind") || !strings.Contains(got, "TestAGoroutineLeftBehind") {
				t.Errorf("got %q", got)
			}
			if got := outcome(t, parallel, start(composetest.With(tidy))); got != "" {
				t.Errorf("another test answers for it: %s", got)
			}
		})
	}
	t.Run("by the test itself", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		defer close(release)
		got := outcome(t, true, func(t testing.TB) {
			composetest.Start(t, composetest.With(bundle(module.Runner{})))
			go func() { <-release }()
		})
		if !strings.Contains(got, "goroutines left behind") {
			t.Errorf("got %q", got)
		}
	})
}

func TestTheSignalLoopOfTheProcessIsNobodysGoroutine(t *testing.T) {
	asks := bundle(module.Runner{Start: func(context.Context) error {
		received := make(chan os.Signal, 1)
		signal.Notify(received, os.Interrupt)
		signal.Stop(received)
		return nil
	}})
	if got := outcome(t, false, start(composetest.With(asks))); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestAProcessLeftBehindFailsItsTest(t *testing.T) {
	if len(testkit.Children()) == 0 && runtime.GOOS != "linux" {
		t.Skip("/proc is not there to list children")
	}
	var child *exec.Cmd
	leaky := bundle(module.Runner{Start: func(context.Context) error {
		child = exec.Command("sleep", "4242")
		return child.Start()
	}})
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	if got := outcome(t, false, start(composetest.With(leaky))); !strings.Contains(got, "processes left behind") || !strings.Contains(got, "sleep 4242") {
		t.Errorf("got %q", got)
	}
	if got := outcome(t, false, start(composetest.With(bundle(module.Runner{})))); got != "" {
		t.Errorf("another test answers for it: %s", got)
	}
}

func TestACompositionHasAHomeOfItsOwn(t *testing.T) {
	before := os.Getenv("DSH_HOME")
	var during string
	composetest.Start(t, composetest.With(bundle(module.Runner{Start: func(context.Context) error {
		during = os.Getenv("DSH_HOME")
		return nil
	}})))
	if during == "" || during == before {
		t.Errorf("got %q, and %q before", during, before)
	}
}
