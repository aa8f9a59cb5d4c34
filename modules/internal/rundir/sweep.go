package rundir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dsh/internal/dshhome"
)

// IsHost reports whether a name is the id of a host: sixteen hexadecimal digits. (An expression would cost every start a
// tenth of a millisecond.)
func IsHost(name string) bool { return len(name) == 16 && strings.Trim(name, "0123456789abcdef") == "" }

// Sweep removes what ended hosts left: all but their spill files at once, and those once they are older than keep. It
// stops early when ctx ends.
func (d *Dir) Sweep(ctx context.Context, keep time.Duration) error {
	err := sweepAll(ctx, filepath.Join(d.home, "run"), keep)
	if fallback := dshhome.Spare(); isPrivate(fallback) == nil {
		err = errors.Join(err, sweepAll(ctx, fallback, keep))
	}
	return err
}

func sweepAll(ctx context.Context, run string, keep time.Duration) error {
	entries, err := os.ReadDir(run)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // no host has left anything there that would be ours to remove
		}
		return err
	}
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		if e.IsDir() && IsHost(strings.TrimPrefix(e.Name(), ".")) { // it has a dot while it is being made
			errs = append(errs, sweep(ctx, filepath.Join(run, e.Name()), keep))
		}
	}
	return errors.Join(errs...)
}

// unmade is how old a directory without a lock must be to count as given up in the making.
const unmade = time.Hour

func sweep(ctx context.Context, dir string, keep time.Duration) error {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|noFollow, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Lstat(dir); err != nil || time.Since(info.ModTime()) < unmade {
			return nil
		}
		return os.RemoveAll(dir)
	case err != nil:
		return err
	}
	defer lock.Close()
	if tryLock(lock) != nil {
		return nil // its host is alive, or another sweeps it
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != lockName && e.Name() != spillName {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	kept, err := expire(ctx, filepath.Join(dir, spillName), keep)
	if err != nil || kept {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, os.RemoveAll(dir))...)
}

// expire removes old files of dir and reports whether any is left.
func expire(ctx context.Context, dir string, keep time.Duration) (kept bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if ctx.Err() != nil || time.Since(info.ModTime()) < keep {
			kept = true
			continue
		}
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return kept, errors.Join(errs...)
}
