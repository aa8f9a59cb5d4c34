package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"dsh/internal/dshhome"
)

const (
	lockName  = "lock"
	spillName = "spill"
)

// Dir is the directory of one host. Its methods may be called concurrently.
type Dir struct {
	home, id string

	mu   sync.Mutex
	path string // empty until it is made
	lock *os.File
}

// New names the directory of host id under home, and makes nothing.
func New(home, id string) *Dir { return &Dir{home: home, id: id} }

// CreateSpill makes spill/name, which must not exist, for this user alone.
func (d *Dir) CreateSpill(name string) (*os.File, error) {
	path, err := d.make()
	if err != nil {
		return nil, err
	}
	spill := filepath.Join(path, spillName)
	if err := os.Mkdir(spill, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenFile(filepath.Join(spill, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Close gives up the lock, and removes the directory if it holds no file.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	// Only empty directories go by os.Remove, so other errors are of no interest.
	if err := os.Remove(filepath.Join(d.path, spillName)); err == nil || errors.Is(err, fs.ErrNotExist) {
		os.Remove(filepath.Join(d.path, lockName))
		os.Remove(d.path)
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// make makes and locks the directory, once.
func (d *Dir) make() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil {
		return d.path, nil
	}
	run, err := d.run()
	if err != nil {
		return "", err
	}
	// Made under another name, so that no sweep finds it before it is locked.
	fresh := filepath.Join(run, "."+d.id)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return "", err
	}
	// Nor does one find the lock before it is held: a lock that can be taken is that of a dead host.
	unlocked := filepath.Join(fresh, "."+lockName)
	lock, err := os.OpenFile(unlocked, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(fresh))
	}
	path := filepath.Join(run, d.id)
	err = tryLock(lock)
	if err == nil {
		err = os.Rename(unlocked, filepath.Join(fresh, lockName))
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return "", errors.Join(err, lock.Close(), os.RemoveAll(fresh))
	}
	d.path, d.lock = path, lock
	return path, nil
}

// run makes the directory that those of all hosts are in, at the better of two places.
func (d *Dir) run() (string, error) {
	run := filepath.Join(d.home, "run")
	err := os.MkdirAll(run, 0o700)
	if err == nil {
		err = writable(run)
	}
	if err == nil {
		return run, nil
	}
	fallback := dshhome.Spare()
	if ferr := private(fallback); ferr != nil {
		return "", errors.Join(err, ferr)
	}
	return fallback, nil
}

// private makes dir, at a place where others may write, for this user alone. What is there already must be just that.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return isPrivate(dir)
}

func isPrivate(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ours(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s has mode %#o, want 0700", dir, info.Mode().Perm())
	}
	return nil
}
