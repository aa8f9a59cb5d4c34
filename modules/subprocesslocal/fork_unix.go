//go:build unix

package subprocesslocal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"dsh/modules/subprocess"
)

// fork starts l. around is called on the thread that forks, calls what it is given for the fork itself, and returns its
// error.
func fork(l *launch, attr *syscall.SysProcAttr, around func(start func() (pid int, err error)) error) error {
	var err error
	start := func() {
		err = around(func() (int, error) {
			if l.atFork != nil {
				l.atFork()
			}
			return syscall.ForkExec(l.path, l.argv, &syscall.ProcAttr{Dir: l.dir, Env: l.env, Files: l.files, Sys: attr})
		})
	}
	// A thread that forked while another wrote a program that is run now keeps that program open for writing until its
	// own child has called exec.
	for wait := time.Millisecond; ; wait *= 2 {
		if l.onThread == nil && !maskInherited() {
			start()
		} else if refused := onThread(l.onThread, start); refused != nil {
			return refused
		}
		if !errors.Is(err, syscall.ETXTBSY) || wait > 100*time.Millisecond {
			break
		}
		time.Sleep(wait)
	}
	return blame(l, err)
}

// onThread runs prepare and start on a thread of their own, which ends with them, so that what prepare did to the
// thread is done to nobody else.
func onThread(prepare func() error, start func()) (refused error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		if onMainThread() {
			// The one thread that does not end: what was done to it would stay, and the kernel takes it for the process. It
			// is held, so that the next goroutine gets another.
			refused = onThread(prepare, start)
			runtime.UnlockOSThread()
			return
		}
		clearMask()
		if prepare != nil {
			if refused = prepare(); refused != nil {
				return
			}
		}
		start()
	}()
	<-done
	return refused
}

// blame says whose fault a refused fork or exec is. The directory was looked at before.
func blame(l *launch, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		if _, gone := os.Stat(l.dir); gone != nil {
			return &subprocess.DirError{Dir: l.dir, Err: err}
		}
		// The file is there: what is not is the interpreter that its first line or its header names.
		return &subprocess.ExecutableError{Name: l.argv[0], Reason: "needs an interpreter that does not exist"}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.ETXTBSY), errors.Is(err, syscall.ELOOP):
		return &subprocess.ExecutableError{Name: l.argv[0], Reason: "cannot be run: " + err.Error()}
	}
	return fmt.Errorf("start %s: %w", l.path, err)
}
