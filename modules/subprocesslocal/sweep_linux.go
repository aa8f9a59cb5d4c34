package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/internal/rundir"
)

// isTree reports whether a name is that of the root of a host's tree.
func isTree(name string) bool {
	id, ok := strings.CutPrefix(name, treePrefix)
	return ok && rundir.IsHost(strings.TrimSuffix(id, ".scope"))
}

const (
	// doubt is how long a tree must look dead: that of a host which is starting does, and one whose guard is replaced.
	doubt = 500 * time.Millisecond
	// sweeping bounds the removal of one tree.
	sweeping = 5 * time.Second
)

// claim tells other hosts that the tree is that of a living one, for as long as what it returns is open.
func claim(root string) (lock int, err error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	// Shared, as whoever looks whether a tree is claimed holds the lock for a moment too.
	for {
		err = unix.Flock(fd, unix.LOCK_SH)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return -1, errors.Join(&fs.PathError{Op: "lock", Path: root, Err: err}, unix.Close(fd))
	}
	return fd, nil
}

// sweepTrees ends and removes the trees in dir whose host and guard are both gone, as when both were killed.
func sweepTrees(ctx context.Context, dir string) error {
	suspects, err := deadTrees(dir)
	if err != nil || len(suspects) == 0 {
		return err
	}
	sure := time.NewTimer(doubt)
	defer sure.Stop()
	select {
	case <-sure.C:
	case <-ctx.Done():
		return nil
	}
	var errs []error
	for _, root := range suspects {
		if ctx.Err() != nil {
			break
		}
		if !isDead(root) {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, sweeping)
		err := (tree{root: root}).remove(limit)
		if err == nil {
			// A scope's manager takes the empty scope for its own to remove, and gives up where this comes in between.
			err = removeCgroup(limit, root)
		}
		if err != nil && ctx.Err() == nil {
			errs = append(errs, fmt.Errorf("%s: %w", root, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// deadTrees returns the trees in dir that look dead and are this user's to remove.
func deadTrees(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dead []string
	me := os.Geteuid()
	for _, e := range entries {
		if !e.IsDir() || !isTree(e.Name()) {
			continue
		}
		root := filepath.Join(dir, e.Name())
		var s unix.Stat_t
		if unix.Stat(root, &s) == nil && (me == 0 || int(s.Uid) == me) && isDead(root) {
			dead = append(dead, root)
		}
	}
	return dead, nil
}

// isDead reports that a tree has no guard, and that no host has claimed it. A host in another cgroup namespace has another
// set of locks; its guard is seen nevertheless.
func isDead(root string) bool {
	t := tree{root: root}
	if populated, _ := events(t.runtime()); populated {
		return false
	}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}
