package compose

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// InterruptedError is the cause of a context that a signal ended.
type InterruptedError struct{ Signal os.Signal }

// Error names the signal.
func (e *InterruptedError) Error() string {
	switch e.Signal {
	case syscall.SIGINT:
		return "interrupted by SIGINT"
	case syscall.SIGTERM:
		return "interrupted by SIGTERM"
	case syscall.SIGHUP:
		return "interrupted by SIGHUP"
	}
	return fmt.Sprintf("interrupted by %v", e.Signal)
}

// ExitCode returns what a shell reports for a process that the signal ended: 130, 143, 129.
func (e *InterruptedError) ExitCode() int {
	if s, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}

// Signals turns what asks a host to end into one awaited stop: the first of SIGINT, SIGTERM and SIGHUP ends a context. A
// SIGINT after that is a person who waits no longer: everything handed to OnSecond is called at once, and the host exits
// with 130. Any other signal after the first changes nothing, nor does a SIGINT that comes with the first one: where a
// terminal sends it to a program and to what runs the program, and that hands it on, or timeout(1) does.
type Signals struct {
	cancel   context.CancelCauseFunc
	received chan os.Signal
	exit     func(code int)
	done     sync.WaitGroup
	quit     chan struct{}

	mu     sync.Mutex
	second []func()
}

// WatchSignals takes the signals over, those excepted that are ignored, as under nohup. It returns a context that ends
// with ctx, or by a signal with an *InterruptedError as its cause. Exit is os.Exit, unless a test has reason to stay.
func WatchSignals(ctx context.Context, exit func(code int)) (context.Context, *Signals) {
	received := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(received, s)
		}
	}
	s := &Signals{received: received, exit: exit, quit: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.done.Go(s.watch)
	return ctx, s
}

// OnSecond adds to what the second SIGINT calls. It fits RunOptions.Began.
func (s *Signals) OnSecond(kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second = append(s.second, kill)
}

// Stop gives the signals back and ends the context.
func (s *Signals) Stop() {
	signal.Stop(s.received)
	close(s.quit)
	s.done.Wait()
	s.cancel(nil)
}

// echo is how long after a SIGINT another one is still the same.
const echo = 100 * time.Millisecond

func (s *Signals) watch() {
	var first os.Signal
	var began time.Time
	for {
		select {
		case sig := <-s.received:
			switch {
			case first == nil:
				first, began = sig, time.Now()
				s.cancel(&InterruptedError{Signal: sig})
			case sig == syscall.SIGINT && first == syscall.SIGINT && time.Since(began) < echo:
			case sig == syscall.SIGINT:
				s.killAll()
				s.exit((&InterruptedError{Signal: sig}).ExitCode())
				return
			}
		case <-s.quit:
			return
		}
	}
}

// killAll gives all of them together hardly longer than one Kill takes.
func (s *Signals) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sync.WaitGroup
	for _, kill := range s.second {
		all.Go(kill)
	}
	killed := make(chan struct{})
	go func() { // the process ends while it waits
		all.Wait()
		close(killed)
	}()
	select {
	case <-killed:
	case <-time.After(killWithin + 50*time.Millisecond):
	}
}
