package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// treePrefix begins the name of every cgroup tree; the host's id follows, and for a scope its suffix.
const treePrefix = "dsh-"

// tree is the cgroups of one host:
//
//	root/runtime           the guard, and the host itself once a limit was set
//	root/cmds/cmd-<n>      one command; its limits are written here
//	root/cmds/cmd-<n>/p    what the command is born in
type tree struct {
	root string // a directory; its name is treePrefix, the host's id and, if it is a scope, ".scope"
	path string // the same as /proc/PID/cgroup has it
}

func (t tree) runtime() string { return filepath.Join(t.root, "runtime") }
func (t tree) cmds() string    { return filepath.Join(t.root, "cmds") }

// isScope reports whether the root is a scope, which this process is in.
func (t tree) isScope() bool { return strings.HasSuffix(t.root, ".scope") }

// create makes the tree, whose root may exist.
func (t tree) create() error {
	for _, dir := range []string{t.root, t.runtime(), t.cmds()} {
		if err := unix.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	return nil
}

// remove ends all commands and removes the tree, trying again until ctx ends. A root that holds this host's own process
// stays: it is a scope, which its manager removes.
func (t tree) remove(ctx context.Context) error {
	if !exists(t.root) {
		return nil
	}
	err := killAll(t.cmds())
	for _, dir := range []string{t.cmds(), t.runtime(), t.root} {
		if dir == t.root && t.isScope() {
			break
		}
		err = errors.Join(err, removeCgroup(ctx, dir))
	}
	return err
}

// removeCgroup removes a cgroup and all below it, trying again until ctx ends: what was killed is in its cgroup until it
// is dead, and a command may be making cgroups below its own meanwhile.
func removeCgroup(ctx context.Context, dir string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := removeOnce(dir)
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// removeOnce is removeCgroup at the first try.
func removeOnce(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	for _, below := range slices.Backward(subtree(dir)) {
		if err = unix.Rmdir(below); errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	if err != nil { // of dir itself, the last
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// subtree returns a cgroup and all below it, parents first.
func subtree(dir string) []string {
	dirs := []string{dir}
	for i := 0; i < len(dirs); i++ {
		var s unix.Stat_t
		if unix.Stat(dirs[i], &s) != nil || s.Nlink <= 2 {
			continue // a cgroup's links are itself, its name, and one for each cgroup in it
		}
		entries, err := os.ReadDir(dirs[i])
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dirs[i], e.Name()))
			}
		}
	}
	return dirs
}

// killAll sends KILL to every process of a cgroup and of those below it, at one stroke.
func killAll(dir string) error {
	err := writeCgroup(dir, "cgroup.kill", "1")
	if err == nil {
		return killHeadless(dir)
	}
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	if !exists(dir) {
		return nil // removed, so it was empty
	}
	// Before Linux 5.14. What is frozen starts nobody.
	err = writeCgroup(dir, "cgroup.freeze", "1")
	for range 100 {
		if populated, frozen := events(dir); !populated || frozen {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, pid := range pidsIn(subtree(dir)...) {
		if pid > 0 {
			err = errors.Join(err, killIn(dir, pid))
		}
	}
	return errors.Join(err, writeCgroup(dir, "cgroup.freeze", "0"))
}

// killHeadless sends KILL to processes that go on though their first thread has ended. cgroup.kill sends it to the first
// thread alone, and a dead one passes it on to nobody (tried on Linux 6.18).
func killHeadless(dir string) error {
	var errs []error
	for _, pid := range pidsIn(subtree(dir)...) {
		if s, ok := readStat(proc(pid, "/stat")); ok && s.dead() {
			errs = append(errs, killIn(dir, pid))
		}
	}
	return errors.Join(errs...)
}

func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// writeCgroup writes to one of a cgroup's files, as the kernel wants it: at once, in one write.
func writeCgroup(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &fs.PathError{Op: fmt.Sprintf("write %q", value), Path: path, Err: err}
	}
	return nil
}

// events says what cgroup.events does. A cgroup that is not there is empty.
func events(dir string) (populated, frozen bool) {
	var buf [256]byte
	n := readInto(filepath.Join(dir, "cgroup.events"), buf[:])
	for line := range strings.Lines(string(buf[:n])) {
		switch strings.TrimSpace(line) {
		case "populated 1":
			populated = true
		case "frozen 1":
			frozen = true
		}
	}
	return populated, frozen
}

// commandCgroups is subtree for a command's cgroup, which mostly has one below it, and that none.
func commandCgroups(dir string) []string {
	var s unix.Stat_t
	if unix.Stat(dir, &s) == nil && s.Nlink > 3 {
		return subtree(dir)
	}
	return append([]string{dir}, subtree(filepath.Join(dir, "p"))...)
}

// pidsIn returns the processes of cgroups; 0 stands for one that this pid namespace has no number
// for.
func pidsIn(dirs ...string) []int {
	var all []int
	for _, d := range dirs {
		list, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if err != nil {
			continue // removed meanwhile, or threaded: then the processes are listed further up
		}
		all = append(all, pids(list)...)
	}
	return all
}

// killIn sends KILL to a process that is in the cgroup.
func killIn(dir string, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !slices.Contains(pidsIn(subtree(dir)...), pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
