//go:build unix

package sessionjsonl

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"dsh/modules/session"
)

// lock locks the file at path for as long as the returned file is open, or returns session.ErrLocked.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = session.ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
