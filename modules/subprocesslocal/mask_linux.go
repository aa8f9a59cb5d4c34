package subprocesslocal

import "golang.org/x/sys/unix"

// maskInherited reports whether this process was started with signals blocked. Every thread of Go's has the mask of the
// first, and so would every child.
func maskInherited() bool {
	var mask unix.Sigset_t
	return unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask) == nil && mask != unix.Sigset_t{}
}

// clearMask makes the calling thread, and with it the child that it forks, block nothing.
func clearMask() {
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
}
