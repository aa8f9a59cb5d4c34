package subprocesslocal

import (
	"os"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ

// pipeFrom returns a pipe that a child writes and we read. Our end does not block; the child's must, as programs expect
// it to.
func pipeFrom() (ours *os.File, child int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, err
	}
	unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "output"), fds[1], nil
}

// pipeTo returns a pipe that we write and a child reads.
func pipeTo() (ours *os.File, child int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, err
	}
	unix.SetNonblock(fds[1], true)
	return os.NewFile(uintptr(fds[1]), "stdin"), fds[0], nil
}

// enlarge makes a pipe hold size bytes, if this user may have that much.
func enlarge(fd, size int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
	return err == nil
}
