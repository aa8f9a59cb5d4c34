//go:build unix

package approvalterminal

import (
	"os"

	"golang.org/x/sys/unix"
)

type tty struct{ *os.File }

// open opens the terminal that this process belongs to. Opened without blocking, so that a read can be ended.
func open() (device, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return tty{f}, nil
}

// control calls f with the descriptor, without taking it out of the runtime's care as Fd does.
func (t tty) control(f func(fd int)) {
	if c, err := t.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { f(int(fd)) })
	}
}
