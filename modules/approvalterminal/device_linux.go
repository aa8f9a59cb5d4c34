package approvalterminal

import "golang.org/x/sys/unix"

func (t tty) discard() {
	t.control(func(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
}
