package subprocesslocal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"dsh/modules/subprocess"
)

// session makes ranges that are a process group alone: macOS has no subreapers.
type session struct {
	mu   sync.Mutex
	live map[*sessionRange]struct{}
}

var _ choosing = (*session)(nil)

func newRanges(Config, string, *slog.Logger) choosing {
	return &session{live: map[*sessionRange]struct{}{}}
}

func (s *session) kind() subprocess.RangeKind { return subprocess.RangeNone }
func (s *session) start() error               { return nil }
func (s *session) report() []subprocess.RangeVerdict {
	return []subprocess.RangeVerdict{{Kind: subprocess.RangeNone, Chosen: true, Reason: "this platform has no other"}}
}
func (s *session) stop(context.Context) error { return nil }

func (s *session) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.live {
		r.kill()
	}
}

func (s *session) allow(l subprocess.Limits) error {
	if l != (subprocess.Limits{}) {
		return errors.New("commands cannot be limited on this platform")
	}
	return nil
}

func (s *session) make(l subprocess.Limits) (managedRange, error) {
	if err := s.allow(l); err != nil {
		return nil, err
	}
	return &sessionRange{owner: s, gone: make(chan struct{})}, nil
}

type sessionRange struct {
	owner  *session
	leader int
	gone   chan struct{}

	mu     sync.Mutex
	over   bool // the number of the group may be another's
	termed bool
}

var _ managedRange = (*sessionRange)(nil)

func (r *sessionRange) fork(l *launch) error {
	return fork(l, &syscall.SysProcAttr{Setsid: true}, func(start func() (int, error)) (err error) {
		r.leader, err = start()
		if err == nil {
			r.owner.mu.Lock()
			r.owner.live[r] = struct{}{}
			r.owner.mu.Unlock()
		}
		return err
	})
}

func (r *sessionRange) wait() (status syscall.WaitStatus, err error) {
	for {
		_, err = syscall.Wait4(r.leader, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if !r.vacant() {
		go func() {
			for !r.vacant() {
				time.Sleep(look)
			}
		}()
	}
	return status, err
}

// vacant reports whether the group is empty, once its leader was waited for.
func (r *sessionRange) vacant() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !errors.Is(syscall.Kill(-r.leader, 0), syscall.ESRCH) {
		return r.over
	}
	r.over = true
	r.owner.mu.Lock()
	delete(r.owner.live, r)
	r.owner.mu.Unlock()
	close(r.gone)
	return true
}

func (r *sessionRange) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	_ = syscall.Kill(-r.leader, sig)
}

// term cannot tell members apart: it signals the group once, a wrapper among it.
func (r *sessionRange) term(bool) {
	r.mu.Lock()
	again := r.termed
	r.termed = true
	r.mu.Unlock()
	if !again {
		r.signal(syscall.SIGTERM)
		r.signal(syscall.SIGCONT)
	}
}

func (r *sessionRange) kill() { r.signal(syscall.SIGKILL) }

// idle is unknown; what is silent is taken for idle.
func (r *sessionRange) idle() bool { return true }

// count cannot count a group; one stands for some.
func (r *sessionRange) count() int { return 1 }

func (r *sessionRange) empty() <-chan struct{} { return r.gone }

func (r *sessionRange) release()        {}
func (r *sessionRange) oomKilled() bool { return false }
