package subprocesslocal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// rangeXattr marks the cgroup that a command was born in: what runs there is owned already.
	rangeXattr = "user.dsh.range"
	// maxControl bounds what is read of a file of /proc.
	maxControl = 1 << 20
)

// place is the cgroup that a process is in.
type place struct {
	dir   string // where it is mounted
	path  string // as /proc/PID/cgroup has it
	mount string // the top of what is mounted of the hierarchy
}

// ownPlace returns the cgroup of the v2 hierarchy that this process is in. On a hybrid machine that hierarchy is mounted
// beside those of v1.
func ownPlace() (place, error) {
	path, err := cgroupPath(os.Getpid())
	if err != nil {
		return place{}, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return place{}, err
	}
	return placeIn(mounts, path)
}

// placeIn finds the cgroup with a path among the mounts.
func placeIn(mountinfo []byte, path string) (place, error) {
	err := errors.New("no cgroup v2 hierarchy is mounted")
	for line := range bytes.Lines(mountinfo) {
		// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
		before, after, _ := strings.Cut(string(line), " - ")
		f := strings.Fields(before)
		if kind, _, _ := strings.Cut(after, " "); kind != "cgroup2" || len(f) < 6 {
			continue
		}
		root, mount := unescape(f[3]), unescape(f[4])
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
		if !ok || rest != "" && rest[0] != '/' {
			err = fmt.Errorf("this process's cgroup %s is not below the one mounted on %s", path, mount)
			continue
		}
		at := place{dir: filepath.Join(mount, rest), path: path, mount: mount}
		var s unix.Statfs_t
		if serr := unix.Statfs(at.dir, &s); serr != nil || s.Type != unix.CGROUP2_SUPER_MAGIC {
			err = fmt.Errorf("this process's cgroup is not at %s", at.dir)
			continue
		}
		return at, nil
	}
	return place{}, err
}

// unescape undoes the kernel's way to write a blank, a tab, a new line and a backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// cgroupPath returns the path of a process's cgroup in the v2 hierarchy.
func cgroupPath(pid int) (string, error) {
	f, err := os.Open(proc(pid, "/cgroup"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return v2Path(f)
}

// v2Path finds that path in the lines that /proc/PID/cgroup has, one for each hierarchy (cgroups(7)).
func v2Path(membership io.Reader) (string, error) {
	lines := bufio.NewScanner(membership)
	lines.Buffer(nil, maxControl)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			return strings.TrimSuffix(path, " (deleted)"), nil
		}
	}
	return "", errors.Join(errors.New("the kernel has no cgroup v2 hierarchy"), lines.Err())
}

// ancestry returns the cgroup and those above it, as far as they are mounted.
func (at place) ancestry() []string {
	dirs := []string{at.dir}
	for dir := at.dir; dir != at.mount && len(dir) > len(at.mount); {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	return dirs
}

// inRange reports whether this process is in a command's range: of a host that is further up.
func (at place) inRange() bool {
	for _, dir := range at.ancestry() {
		if hasXattr(dir, rangeXattr) {
			return true
		}
	}
	return false
}

// unit returns the innermost systemd unit that the cgroup belongs to, and whether systemd has left the unit's cgroup to
// who is in it. The name is empty when there is no unit.
func (at place) unit() (name string, delegated bool) {
	for path, dir := at.path, at.dir; path != "/" && path != "." && path != ""; path, dir = filepath.Dir(path), filepath.Dir(dir) {
		name := filepath.Base(path)
		if !strings.HasSuffix(name, ".service") && !strings.HasSuffix(name, ".scope") {
			continue
		}
		for _, attr := range []string{"user.delegate", "trusted.delegate"} {
			var value [8]byte
			if n, err := unix.Getxattr(dir, attr, value[:]); err == nil && string(value[:n]) == "1" {
				return name, true
			}
		}
		return name, false
	}
	return "", false
}

func hasXattr(dir, name string) bool {
	_, err := unix.Getxattr(dir, name, nil)
	return err == nil
}
