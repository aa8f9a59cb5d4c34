package testkit

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Faults runs a check that may find faults, without failing t, and returns what it said: nothing if it is content. The
// check has a goroutine of its own, which its Fatal ends; a panic is a fault. Its cleanups have run when Faults returns.
func Faults(t testing.TB, check func(testing.TB)) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &recorder{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.clean()
		defer cancel()
		r.contain(func() { check(r) })
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults
}

// recorder is a TB that keeps what a check has to say.
type recorder struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	faults   []string
	cleanups []func()
}

func (r *recorder) contain(f func()) {
	defer func() {
		if v := recover(); v != nil {
			r.Errorf("panic: %v", v)
		}
	}()
	f()
}

// clean runs the cleanups, the last first. Each may add another, or end the goroutine.
func (r *recorder) clean() {
	r.mu.Lock()
	n := len(r.cleanups) - 1
	if n < 0 {
		r.mu.Unlock()
		return
	}
	f := r.cleanups[n]
	r.cleanups = r.cleanups[:n]
	r.mu.Unlock()
	defer r.clean()
	r.contain(f)
}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults) > 0
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) {
	r.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (r *recorder) Fail() { r.Errorf("failed") }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) SkipNow() { runtime.Goexit() }

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}
