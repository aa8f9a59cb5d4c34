package approvalterminal

import "golang.org/x/sys/unix"

func (t tty) discard() {
	const input = 1 // FREAD of <sys/fcntl.h>
	t.control(func(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input) })
}
