package sandboxlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"dsh/modules/internal/rundir"
	"dsh/modules/sandbox"
)

// own is a directory of dsh's own, as the kernel knows it.
type own struct {
	dir   string
	spare bool // it is where the files of a host are whose home cannot be written
}

// protected returns dsh's own directories that are there. It refuses a workspace that would give
// commands a way to change what dsh reads, now or the next time.
func (m *machine) protected(p sandbox.Policy) ([]own, error) {
	writes := p.Mode == sandbox.WorkspaceWrite
	if writes {
		if err := nameable(p.WorkspaceRoot); err != nil {
			return nil, err
		}
	}
	var dirs []own
	for i, place := range rundir.Places(m.home) {
		real, links, exists, err := trace(place)
		if err != nil {
			return nil, &refusalError{reason: fmt.Sprintf("dsh's own directory %s: %v", place, err)}
		}
		if writes {
			for _, link := range links {
				if within(link, p.WorkspaceRoot) {
					return nil, &refusalError{reason: fmt.Sprintf(
						"the workspace %s holds the symbolic link %s, which leads to dsh's own files", p.WorkspaceRoot, link)}
				}
			}
			if within(p.WorkspaceRoot, real) {
				return nil, &refusalError{reason: fmt.Sprintf(
					"the workspace %s is inside of %s, which holds dsh's own files", p.WorkspaceRoot, real)}
			}
			if i == 0 && !exists && within(real, p.WorkspaceRoot) {
				// What is not there cannot be protected: a command could make it.
				rel := strings.TrimPrefix(strings.TrimPrefix(real, p.WorkspaceRoot), "/")
				if err := makeDirs(p.WorkspaceRoot, rel); err != nil {
					return nil, &refusalError{reason: fmt.Sprintf("dsh's own directory %s: %v", place, err)}
				}
				exists = true
			}
		}
		if exists {
			dirs = append(dirs, own{dir: real, spare: i > 0})
		}
	}
	return dirs, nil
}

// temp returns the directory for temporary files of p's session. Without one nothing is confined: programs would fail in
// ways that nobody understands.
func (m *machine) temp(p sandbox.Policy) (string, error) {
	dir, err := m.files.Temp(p.SessionID)
	if err != nil {
		return "", &refusalError{reason: fmt.Sprintf("the session's temporary directory: %v", err)}
	}
	return dir, nil
}

// nameable refuses workspaces that are no place for anybody's work.
func nameable(root string) error {
	refused := root == "/" || root == run || within(root, "/proc") || within(root, "/sys") ||
		within(root, "/dev") && (root == shm || !within(root, shm))
	if refused {
		return &refusalError{reason: fmt.Sprintf("%s cannot be a workspace that commands write to", root)}
	}
	return nil
}

// trace follows an absolute path as the kernel does. It returns where it leads, as far as that is there, and the symbolic
// links on the way, each by its own real path.
func trace(path string) (real string, links []string, exists bool, err error) {
	const most = 40 // as in path_resolution(7)
	real = "/"
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(next, filepath.Join(rest...)), links, false, nil
		case err != nil:
			return "", nil, false, err
		case info.Mode()&fs.ModeSymlink == 0:
			real = next
			continue
		}
		if links = append(links, next); len(links) > most {
			return "", nil, false, &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, false, err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, links, true, nil
}

// identity tells whether directories are still those that they were.
type identity struct{ workspace, temp, home, substitute inode }

type inode struct{ dev, ino uint64 }

func (m *machine) identify(workspace, temp string) identity {
	places := rundir.Places(m.home)
	return identity{inodeOf(workspace), inodeOf(temp), inodeOf(places[0]), inodeOf(places[1])}
}

func inodeOf(path string) inode {
	var s unix.Stat_t
	if path == "" || unix.Stat(path, &s) != nil {
		return inode{}
	}
	return inode{uint64(s.Dev), s.Ino}
}

// cache keeps something per policy.
type cache[T any] struct {
	mu  sync.Mutex
	all map[sandbox.Policy]*T
}

// maxCached is how many policies are remembered. Sessions come and go; what is forgotten is made again.
const maxCached = 64

func (c *cache[T]) of(p sandbox.Policy) *T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[p]
}

func (c *cache[T]) keep(p sandbox.Policy, v *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxCached {
		c.all = map[sandbox.Policy]*T{}
	}
	c.all[p] = v
}
