package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"

	"dsh/internal/diag"
	"dsh/module"
)

// journal is what rows did, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// String leaves out the constructions, which are not in step with what else is done.
func (j *journal) String() string {
	isNew := func(line string) bool { return strings.HasPrefix(line, "new ") }
	return strings.Join(slices.DeleteFunc(j.all(), isNew), ", ")
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// hooks are what a row of a test does beyond writing to the journal.
type hooks struct {
	new, start, stop        func(ctx context.Context) error
	kill                    func()
	startWithin, stopWithin time.Duration
}

// row returns a mount whose module writes to the journal and does h.
func (j *journal) row(id string, h hooks) Mount {
	do := func(what string, f func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			j.add(what + " " + id)
			if f == nil {
				return nil
			}
			return f(ctx)
		}
	}
	build := func() (module.Runner, error) {
		err := do("new", h.new)(context.Background())
		return module.Runner{
			Start: do("start", h.start),
			Stop:  do("stop", h.stop),
			Kill: func() {
				j.add("kill " + id)
				if h.kill != nil {
					h.kill()
				}
			},
		}, err
	}
	return mount(id, module.Define(module.Spec[noConfig]{
		Name: "row-" + id, Constructor: build, StartWithin: h.startWithin, StopWithin: h.stopWithin,
	}))
}

func mount(id string, m module.Module) Mount {
	return Mount{ID: id, Module: m, Config: m.DefaultConfig(), Place: diag.Place{File: "at-" + id}}
}

func planOf(mounts ...Mount) *Plan { return &Plan{mounts: mounts} }

func mustApply(t testing.TB, mounts ...Mount) *Running {
	t.Helper()
	r, err := Apply(t.Context(), planOf(mounts...), RunOptions{})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return r
}

func check(t testing.TB, what, got, want string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (want -, got +):\n%s", what, d)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hang blocks until release is closed, whatever becomes of ctx.
func hang(release <-chan struct{}) func(context.Context) error {
	return func(context.Context) error {
		<-release
		return nil
	}
}

func obey(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func fail(text string) func(context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

func TestRowsStartInOrderAndStopInReverse(t *testing.T) {
	t.Parallel()
	var j journal
	r := mustApply(t, j.row("a", hooks{}), j.row("b", hooks{}), j.row("c", hooks{}))
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	check(t, "journal", j.String(), "start a, start b, start c, stop c, stop b, stop a")
}

func TestRowsAreConstructedInOrderWithoutWaitingForStarts(t *testing.T) {
	t.Parallel()
	var j journal
	last := make(chan struct{})
	r := mustApply(t,
		j.row("a", hooks{start: func(ctx context.Context) error {
			select {
			case <-last:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}),
		j.row("b", hooks{}),
		j.row("c", hooks{new: func(context.Context) error { close(last); return nil }}))
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	isNew := func(line string) bool { return strings.HasPrefix(line, "new ") }
	check(t, "constructions", strings.Join(slices.DeleteFunc(j.all(), func(l string) bool { return !isNew(l) }), ", "), "new a, new b, new c")
}

// TestTheConstructionIsOfTheBudget has a row that constructs and starts within its budget each, and not together.
func TestTheConstructionIsOfTheBudget(t *testing.T) {
	t.Parallel()
	var j journal
	slow := func(context.Context) error { time.Sleep(70 * time.Millisecond); return nil }
	_, err := Apply(t.Context(), planOf(j.row("a", hooks{
		new: slow, startWithin: 100 * time.Millisecond,
		start: func(ctx context.Context) error { _ = slow(ctx); return ctx.Err() },
	})), RunOptions{})
	if !strings.Contains(text(err), "100ms") {
		t.Errorf("got %v", err)
	}
}

func TestRowsAreGivenWhatTheyNeed(t *testing.T) {
	t.Parallel()
	type config struct {
		Name string `koanf:"name"`
	}
	type seen struct {
		fx.In
		A      alpha
		G      gamma `optional:"true"`
		Config config
		Log    *slog.Logger
	}
	var got seen
	user := module.Define(module.Spec[config]{Name: "user", Constructor: func(s seen) beta {
		got = s
		s.Log.Info("hello")
		return thing{row: "user"}
	}})
	var log bytes.Buffer
	userMount := mount("the-user", user)
	userMount.Config = config{Name: "given"}
	r, err := Apply(t.Context(), planOf(
		mount("maker", define("maker", func() alpha { return thing{row: "maker"} })), userMount,
	), RunOptions{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	if got.A != (thing{row: "maker"}) || got.G != nil || got.Config.Name != "given" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(log.String(), `level=INFO msg=hello row=the-user`) {
		t.Errorf("the row's logger does not carry its id: %s", log.String())
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, " row=") || !strings.Contains(line, "hello") && !strings.Contains(line, "level=DEBUG") {
			t.Errorf("an event that is not at debug with the row's id: %s", line)
		}
	}
	if v, ok := Value[beta](r); !ok || v != (thing{row: "user"}) {
		t.Errorf("got %v, %v for a capability that a row provides", v, ok)
	}
	if v, ok := Value[gamma](r); ok || v != nil {
		t.Errorf("got %v, %v for a capability that no row provides", v, ok)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAnOptionalNeedIsGivenWhenItsRowStartedBefore(t *testing.T) {
	t.Parallel()
	type seen struct {
		fx.In
		A alpha `optional:"true"`
	}
	var got alpha
	user := define("user", func(s seen) { got = s.A })
	r := mustApply(t, mount("maker", define("maker", func() alpha { return thing{row: "maker"} })), mount("user", user))
	defer func() { _ = r.Stop() }()
	if got != (thing{row: "maker"}) {
		t.Errorf("got %v, want what the row maker provides", got)
	}
}

func TestAPlanCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	var j journal
	p := planOf(j.row("a", hooks{}))
	for range 2 {
		r, err := Apply(t.Context(), p, RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "journal", j.String(), "start a, stop a, start a, stop a")
}

func TestAFailedStartStopsTheRowsBeforeIt(t *testing.T) {
	t.Parallel()
	cause := errors.New("no bash here")
	for name, c := range map[string]struct {
		b       hooks
		message string
		journal string
	}{
		"in the constructor": {
			b:       hooks{new: func(context.Context) error { return cause }},
			message: `at-b: row "b": start: no bash here [start]`,
			journal: "start a, stop a, kill a",
		},
		"in start": {
			b:       hooks{start: func(context.Context) error { return fmt.Errorf("probe: %w", cause) }},
			message: `at-b: row "b": start: probe: no bash here [start]`,
			journal: "start a, start b, stop a, kill a, kill b",
		},
		"with a panic in the constructor": {
			b:       hooks{new: func(context.Context) error { panic(cause) }},
			message: `at-b: row "b": start: panic: no bash here [start]`,
			journal: "start a, stop a, kill a",
		},
		"with a panic in start": {
			b:       hooks{start: func(context.Context) error { panic(cause) }},
			message: `at-b: row "b": start: panic: no bash here [start]`,
			journal: "start a, start b, stop a, kill a, kill b",
		},
		"with an ended goroutine": {
			b:       hooks{start: func(context.Context) error { runtime.Goexit(); return nil }},
			message: `at-b: row "b": start: ended its goroutine instead of returning [start]`,
			journal: "start a, start b, stop a, kill a, kill b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j journal
			r, err := Apply(t.Context(), planOf(j.row("a", hooks{}), j.row("b", c.b), j.row("c", hooks{})), RunOptions{})
			if r != nil {
				t.Error("a composition came with the error")
			}
			check(t, "error", text(err), c.message)
			// The two kills run side by side.
			got := strings.ReplaceAll(j.String(), "kill b, kill a", "kill a, kill b")
			check(t, "journal", got, c.journal)
			if d, ok := errors.AsType[*diag.Diagnostic](err); !ok || d.Row != "b" || d.Place.File != "at-b" {
				t.Errorf("the diagnostic is %+v", d)
			}
			if !strings.Contains(name, "panic") && !strings.Contains(name, "goroutine") && !errors.Is(err, cause) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestAPanicLeavesItsStackInTheLog(t *testing.T) {
	t.Parallel()
	var j journal
	var log bytes.Buffer
	_, err := Apply(t.Context(), planOf(j.row("a", hooks{start: panics})), RunOptions{
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err == nil {
		t.Fatal("the panic was swallowed")
	}
	if !strings.Contains(log.String(), "compose.panics(") {
		t.Errorf("no stack of the panic in the log:\n%s", log.String())
	}
	if strings.Contains(err.Error(), "goroutine") {
		t.Errorf("the stack is in the error: %v", err)
	}
}

func panics(context.Context) error { panic("out of luck") }

func TestARowWithSeveralRunnersUndoesThoseThatStarted(t *testing.T) {
	t.Parallel()
	var j journal
	type result struct {
		fx.Out
		First, Second, Third module.Runner
	}
	runner := func(name string, startErr, stopErr error) module.Runner {
		return module.Runner{
			Start: func(context.Context) error { j.add("start " + name); return startErr },
			Stop:  func(context.Context) error { j.add("stop " + name); return stopErr },
		}
	}
	boom := define("several", func() result {
		return result{
			First:  runner("first", nil, errors.New("stuck")),
			Second: runner("second", errors.New("no"), nil),
			Third:  runner("third", nil, nil),
		}
	})
	_, err := Apply(t.Context(), planOf(j.row("a", hooks{}), mount("several", boom)), RunOptions{})
	check(t, "error", text(err), `at-several: row "several": start: no [start]
at-several: row "several": stop: stuck [stop]`)
	check(t, "journal", j.String(), "start a, start first, start second, stop first, stop a, kill a")
}

func TestAnEndedContextEndsTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start   func(context.Context) error
		message string
		took    time.Duration
	}{
		"a start that obeys its context": {
			start:   obey,
			message: `at-b: row "b": start: given up: interrupted by SIGTERM [start]`,
			took:    100 * time.Millisecond,
		},
		"a start that wraps its context's error": {
			start:   func(ctx context.Context) error { return fmt.Errorf("probe: %w", obey(ctx)) },
			message: `at-b: row "b": start: probe: context canceled [start]`,
			took:    100 * time.Millisecond,
		},
		"a start that has succeeded by then": {
			start:   func(ctx context.Context) error { <-ctx.Done(); return nil },
			message: `at-b: row "b": start: given up: interrupted by SIGTERM [start]`,
			took:    100 * time.Millisecond,
		},
		"a start that hangs": {
			message: `at-b: row "b": start: given up: interrupted by SIGTERM [start]`,
			took:    100*time.Millisecond + startRespite,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				if c.start == nil {
					c.start = hang(release)
				}
				var j journal
				ctx, cancel := context.WithCancelCause(t.Context())
				interrupt := &InterruptedError{Signal: syscall.SIGTERM}
				time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
				began := time.Now()
				_, err := Apply(ctx, planOf(j.row("a", hooks{}), j.row("b", hooks{start: c.start}), j.row("c", hooks{})), RunOptions{})
				check(t, "error", text(err), c.message)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if e, ok := errors.AsType[*InterruptedError](err); !ok || e != interrupt {
					t.Errorf("the error does not hold who ended the start: %v", e)
				}
				want := "start a, start b, stop a"
				if name == "a start that has succeeded by then" {
					want = "start a, start b, stop b, stop a"
				}
				if got := j.String(); !strings.HasPrefix(got, want+", kill") {
					t.Errorf("got %s, want %s", got, want)
				}
				close(release)
			})
		})
	}
}

func TestAnEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Apply(ctx, planOf(j.row("a", hooks{})), RunOptions{})
	check(t, "error", text(err), `at-a: row "a": start: given up: context canceled [start]`)
	check(t, "journal", j.String(), "")
}

func TestTheContextOfApplyDoesNotEndTheRows(t *testing.T) {
	t.Parallel()
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Apply(ctx, planOf(j.row("a", hooks{stop: func(ctx context.Context) error { return ctx.Err() }})), RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := r.Stop(); err != nil {
		t.Errorf("the stop was ended by the caller's cancel: %v", err)
	}
}

func TestAStartThatOverrunsIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h       func(release <-chan struct{}) hooks
		message string
		took    time.Duration
	}{
		"a start that obeys its context": {
			h:       func(<-chan struct{}) hooks { return hooks{start: obey, startWithin: time.Second} },
			message: `at-b: row "b": start: still busy after 1s [start-timeout]`,
			took:    time.Second,
		},
		"a start that says what took so long": {
			h: func(<-chan struct{}) hooks {
				return hooks{startWithin: time.Second, start: func(ctx context.Context) error {
					<-ctx.Done()
					return fmt.Errorf("bus: %w", context.Cause(ctx))
				}}
			},
			message: `at-b: row "b": start: bus: the row's time is used up [start-timeout]`,
			took:    time.Second,
		},
		"a start that hangs": {
			h:       func(release <-chan struct{}) hooks { return hooks{start: hang(release)} },
			message: `at-b: row "b": start: still busy after 5s [start-timeout]`,
			took:    5*time.Second + startRespite,
		},
		"a constructor that hangs": {
			h:       func(release <-chan struct{}) hooks { return hooks{new: hang(release)} },
			message: `at-b: row "b": start: still busy after 5s [start-timeout]`,
			took:    5*time.Second + startRespite,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var j journal
				began := time.Now()
				_, err := Apply(t.Context(), planOf(j.row("a", hooks{}), j.row("b", c.h(release))), RunOptions{})
				check(t, "error", text(err), c.message)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := j.String(); !strings.Contains(got, "stop a, kill") || strings.Contains(got, "stop b") {
					t.Errorf("got %s, want a stopped and b not", got)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

func TestAnAbandonedStartThatReturnsIsStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h     hooks
		after string
	}{
		"a start that succeeds":          {hooks{}, "stop b"},
		"a start that fails":             {hooks{start: fail("after all")}, ""},
		"a start that panics":            {hooks{start: panics}, ""},
		"a late stop that fails":         {hooks{stop: fail("too late")}, "stop b, kill b"},
		"a late stop that panics":        {hooks{stop: panics}, "stop b, kill b"},
		"a late stop that is in no rush": {hooks{stop: obey}, "stop b, kill b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				end := c.h.start
				c.h.start = func(ctx context.Context) error {
					<-release
					if end != nil {
						return end(ctx)
					}
					return nil
				}
				var j journal
				if _, err := Apply(t.Context(), planOf(j.row("a", hooks{}), j.row("b", c.h)), RunOptions{}); err == nil {
					t.Fatal("no error for a start that hangs")
				}
				before := j.String()
				close(release)
				time.Sleep(time.Minute)
				check(t, "what happened after", strings.TrimPrefix(strings.TrimPrefix(j.String(), before), ", "), c.after)
			})
		})
	}
}

func TestAStopThatHangsLeavesTheOthersStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var j journal
		r := mustApply(t, j.row("a", hooks{}), j.row("b", hooks{stop: hang(release)}), j.row("c", hooks{}))
		began := time.Now()
		err := r.Stop()
		check(t, "error", text(err), `at-b: row "b": stop: still busy after 5s [stop-timeout]`)
		if d, _ := errors.AsType[*diag.Diagnostic](err); d == nil || d.Hint != "what it needs was stopped anyway" {
			t.Errorf("the diagnostic is %+v", d)
		}
		if took := time.Since(began); took != 5250*time.Millisecond {
			t.Errorf("took %v", took)
		}
		lines := strings.Split(j.String(), ", ")[3:]
		slices.Sort(lines[3:]) // the kills run side by side
		check(t, "journal", strings.Join(lines, ", "), "stop c, stop b, stop a, kill a, kill b, kill c")
		close(release)
		synctest.Wait()
	})
}

func TestARunnerThatHangsLeavesTheOthersOfItsRowStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var j journal
		type result struct {
			fx.Out
			First, Second module.Runner
		}
		several := define("several", func() result {
			return result{
				First: module.Runner{Stop: func(ctx context.Context) error { j.add("stop first"); return ctx.Err() }},
				Second: module.Runner{Stop: func(ctx context.Context) error {
					j.add("stop second")
					return hang(release)(ctx)
				}},
			}
		})
		began := time.Now()
		err := mustApply(t, mount("several", several)).Stop()
		check(t, "error", text(err), `at-several: row "several": stop: still busy after 5s [stop-timeout]`)
		check(t, "journal", j.String(), "stop second, stop first")
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("took %v, want the row's budget and little more", took)
		}
		close(release)
	})
}

func TestEveryRowIsStoppedHoweverManyHang(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 16, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var j journal
				var slot time.Duration
				mounts := []Mount{j.row("first", hooks{stop: func(ctx context.Context) error {
					deadline, _ := ctx.Deadline()
					slot = time.Until(deadline)
					return nil
				}})}
				for i := range n {
					mounts = append(mounts, j.row(fmt.Sprint(i), hooks{stop: hang(release)}))
				}
				r := mustApply(t, mounts...)
				began := time.Now()
				err := r.Stop()
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("took %v, want no more than 10s", took)
				}
				if got := len(strings.Split(text(err), "\n")); got != n {
					t.Errorf("got %d errors, want %d:\n%v", got, n, err)
				}
				if got := strings.Count(j.String(), "stop "); got != n+1 {
					t.Errorf("%d rows were stopped, want %d", got, n+1)
				}
				if want := stopAll / 5 / time.Duration(n+1); slot < want {
					t.Errorf("the last row had %v to stop, want at least %v", slot, want)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

func TestErrorsOfAStopAreJoinedInTheOrderOfTheStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("busy")
		var j journal
		r := mustApply(t,
			j.row("a", hooks{stop: func(context.Context) error { return cause }}),
			j.row("b", hooks{}),
			j.row("c", hooks{stop: panics}),
			j.row("d", hooks{stop: obey, stopWithin: time.Second}),
			j.row("e", hooks{stop: func(context.Context) error { runtime.Goexit(); return nil }}))
		err := r.Stop()
		check(t, "error", text(err), `at-e: row "e": stop: ended its goroutine instead of returning [stop]
at-d: row "d": stop: still busy after 1s [stop-timeout]
at-c: row "c": stop: panic: out of luck [stop]
at-a: row "a": stop: busy [stop]`)
		if !errors.Is(err, cause) {
			t.Error("a cause is lost")
		}
	})
}

func TestStopTwiceStopsOnce(t *testing.T) {
	t.Parallel()
	var j journal
	release := make(chan struct{})
	r := mustApply(t, j.row("a", hooks{stop: func(context.Context) error { <-release; return errors.New("busy") }}))
	var errs [3]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = r.Stop() })
	}
	close(release)
	all.Wait()
	for _, err := range append(errs[:], r.Stop()) {
		if err == nil || err != errs[0] {
			t.Errorf("got %v, want the same each time", err)
		}
	}
	check(t, "journal", j.String(), "start a, stop a, kill a")
}

func TestKillReachesEveryRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var j journal
		r := mustApply(t,
			j.row("a", hooks{}),
			j.row("b", hooks{kill: func() { panic("no") }}),
			j.row("c", hooks{kill: func() { <-release }}),
			j.row("d", hooks{}))
		began := time.Now()
		r.Kill()
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("took %v, want no more than 500ms", took)
		}
		lines := strings.Split(j.String(), ", ")[4:]
		slices.Sort(lines)
		check(t, "journal", strings.Join(lines, ", "), "kill a, kill b, kill c, kill d")
		close(release)
		if err := r.Stop(); err != nil {
			t.Errorf("stop after kill: %v", err)
		}
	})
}

func TestKillReachesEveryRowWhileAStopHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		killed := make(chan struct{})
		var once sync.Once
		var j journal
		r := mustApply(t, j.row("a", hooks{kill: func() { once.Do(func() { close(killed) }) }}), j.row("b", hooks{stop: hang(killed)}))
		stopped := make(chan error)
		began := time.Now()
		go func() { stopped <- r.Stop() }()
		synctest.Wait() // b is stopping
		r.Kill()
		if err := <-stopped; err != nil {
			t.Errorf("the stop that the kill released: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v, want none", took)
		}
	})
}

func TestKillGivesUpAStart(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"start", "constructor"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var j journal
				var kill func()
				release := make(chan struct{})
				b := hooks{start: obey}
				if at == "constructor" {
					b = hooks{new: hang(release)}
				}
				ended := make(chan error)
				go func() {
					_, err := Apply(t.Context(), planOf(j.row("a", hooks{}), j.row("b", b), j.row("c", hooks{})), RunOptions{
						Began: func(k func()) { kill = k },
					})
					ended <- err
				}()
				synctest.Wait() // b is starting
				kill()
				if !strings.Contains(j.String(), "kill a") {
					t.Errorf("the row that runs was not killed: %s", j.String())
				}
				if at == "constructor" {
					close(release)
				}
				err := <-ended
				check(t, "error", text(err), `at-b: row "b": start: given up: the composition was killed [start]`)
				if strings.Contains(j.String(), "start c") {
					t.Errorf("a row began after the kill: %s", j.String())
				}
				if at == "constructor" && strings.Contains(j.String(), "start b") {
					t.Errorf("a start began after the kill: %s", j.String())
				}
			})
		})
	}
}

func TestAHookCannotUseItsContextAfterwards(t *testing.T) {
	t.Parallel()
	var j journal
	var kept []context.Context
	keep := func(ctx context.Context) error {
		kept = append(kept, ctx)
		return ctx.Err()
	}
	r := mustApply(t, j.row("a", hooks{start: keep, stop: keep}))
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	for i, ctx := range kept {
		if _, ok := ctx.Deadline(); !ok || ctx.Err() == nil {
			t.Errorf("context %d: deadline %v, %v", i, ok, ctx.Err())
		}
	}
}

func BenchmarkApplyAndStop(b *testing.B) {
	const rows = 16
	var j journal
	var mounts []Mount
	for i := range rows - 2 {
		mounts = append(mounts, j.row(fmt.Sprint(i), hooks{}))
	}
	mounts = append(mounts, mount("maker", define("maker", toAlpha)), mount("user", define("user", alphaToBeta)))
	p := planOf(mounts...)
	b.ReportAllocs()
	for b.Loop() {
		j.lines = j.lines[:0]
		r, err := Apply(b.Context(), p, RunOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*rows), "µs/row")
}
