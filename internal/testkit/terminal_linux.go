package testkit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens a pseudoterminal (pty(7)): the end that a person would see and type at, whose reads can be ended by
// closing it, and the end that is the terminal of a program. The caller closes both.
func OpenTerminal() (screen, tty *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	conn, err := screen.SyscallConn()
	if err == nil {
		var number int
		var ioctl error
		err = conn.Control(func(fd uintptr) {
			if ioctl = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); ioctl == nil {
				number, ioctl = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
		if err = errors.Join(err, ioctl); err == nil {
			tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	return screen, tty, nil
}
