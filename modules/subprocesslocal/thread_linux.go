package subprocesslocal

import (
	"os"

	"golang.org/x/sys/unix"
)

// onMainThread reports whether the thread that calls it is the process's first.
func onMainThread() bool { return unix.Gettid() == os.Getpid() }
