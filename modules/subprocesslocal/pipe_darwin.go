package subprocesslocal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const fionread = 0x4004667f // FIONREAD of sys/filio.h

// pipeFrom returns a pipe that a child writes and we read. Our end does not block; the child's must, as programs expect
// it to.
func pipeFrom() (ours *os.File, child int, err error) {
	read, write, err := pipe()
	if err != nil {
		return nil, 0, err
	}
	unix.SetNonblock(read, true)
	return os.NewFile(uintptr(read), "output"), write, nil
}

// pipeTo returns a pipe that we write and a child reads.
func pipeTo() (ours *os.File, child int, err error) {
	read, write, err := pipe()
	if err != nil {
		return nil, 0, err
	}
	unix.SetNonblock(write, true)
	return os.NewFile(uintptr(write), "stdin"), read, nil
}

// pipe makes both ends close-on-exec before another goroutine can fork.
func pipe() (read, write int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// enlarge has no counterpart: macOS grows its pipes by itself.
func enlarge(int, int) bool { return false }
