package compose

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/testkit"
)

// fakeSignals are Signals that the test sends by hand.
func fakeSignals(t *testing.T) (context.Context, *Signals, chan int) {
	exited := make(chan int, 1)
	ctx, s := WatchSignals(t.Context(), func(code int) { exited <- code })
	signal.Stop(s.received) // what the test process receives is none of the test's business
	t.Cleanup(s.Stop)
	return ctx, s, exited
}

func TestTheFirstSignalEndsTheContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		text   string
		code   int
	}{
		{syscall.SIGINT, "interrupted by SIGINT", 130},
		{syscall.SIGTERM, "interrupted by SIGTERM", 143},
		{syscall.SIGHUP, "interrupted by SIGHUP", 129},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			ctx, s, exited := fakeSignals(t)
			s.OnSecond(func() { t.Error("killed at the first signal") })
			s.received <- c.signal
			<-ctx.Done()
			e, ok := errors.AsType[*InterruptedError](context.Cause(ctx))
			if !ok || e.Error() != c.text || e.ExitCode() != c.code {
				t.Errorf("got the cause %v, want %s with exit code %d", context.Cause(ctx), c.text, c.code)
			}
			// A service manager and a closing terminal repeat themselves; only a person insists.
			s.received <- syscall.SIGTERM
			s.received <- syscall.SIGHUP
			testkit.Eventually(t, 10*time.Second, "the signals are taken", func() bool { return len(s.received) == 0 })
			if len(exited) > 0 {
				t.Errorf("exited with %d", <-exited)
			}
		})
	}
}

func TestAnInterruptAfterTheFirstSignalKillsAndExits(t *testing.T) {
	t.Parallel()
	for _, first := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			_, s, exited := fakeSignals(t)
			killed := make(chan struct{}, 2)
			for range 2 {
				s.OnSecond(func() { killed <- struct{}{} })
			}
			s.received <- first
			if first == syscall.SIGINT {
				s.received <- first // the same, once more
				time.Sleep(echo)
				if len(exited) > 0 {
					t.Error("exited on an echo of the first signal")
				}
			}
			s.received <- syscall.SIGINT
			if code := <-exited; code != 130 {
				t.Errorf("exited with %d, want 130", code)
			}
			if len(killed) != 2 {
				t.Errorf("%d of 2 kills ran before the exit", len(killed))
			}
		})
	}
}

func TestAKillThatHangsDoesNotKeepTheHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exited := make(chan int, 1)
		s := &Signals{
			received: make(chan os.Signal, 2), quit: make(chan struct{}),
			exit: func(code int) { exited <- code }, cancel: func(error) {},
		}
		release := make(chan struct{})
		s.OnSecond(func() { <-release })
		s.received <- syscall.SIGTERM
		s.received <- syscall.SIGINT
		began := time.Now()
		s.done.Go(s.watch)
		<-exited
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("took %v, want no more than 500ms", took)
		}
		close(release)
		s.Stop()
	})
}

func TestStoppedSignalsEndTheirContext(t *testing.T) {
	t.Parallel()
	ctx, s := WatchSignals(t.Context(), os.Exit)
	s.Stop()
	if ctx.Err() == nil || context.Cause(ctx) != context.Canceled {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
