package sandboxlocal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// masks returns arguments that put an empty file over each socket that somebody outside of the sandbox listens to: a
// read-only mount does not keep a program from connecting. They are looked for at each call, for servers come and go.
func (l *layout) masks(seen *sockets) []string {
	var args []string
	var mine map[string]bool // inodes of sockets that are held by processes of this host
	done := map[string]bool{}
	real := map[string]string{} // directories; many sockets share one
	for _, s := range seen.look() {
		dir, known := real[filepath.Dir(s.path)]
		if !known {
			dir, _ = filepath.EvalSymlinks(filepath.Dir(s.path))
			real[filepath.Dir(s.path)] = dir
		}
		if dir == "" {
			continue // not there, or not for us to see, and so not for the command either
		}
		path := filepath.Join(dir, filepath.Base(s.path))
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSocket == 0 || done[path] || l.hides(path) {
			continue
		}
		done[path] = true
		root, outside := l.writableRoot(path)
		if s.past && root != "" && !answers(path) {
			continue // left behind by a server that has ended; a command may want to take its place
		}
		if root == "" {
			args = append(args, "--ro-bind", devnul, path)
			continue
		}
		// A server that a command started in the workspace is for other commands to talk to.
		if mine == nil {
			mine = heldSockets()
		}
		if mine[s.inode] {
			continue
		}
		way := layout{writable: map[string]string{root: outside}, opened: map[string]bool{}}
		if way.open(root, outside, dir) == nil {
			if dir != root {
				way.add("--bind", dir, dir)
			}
			args = append(append(args, way.args...), "--ro-bind", devnul, path)
		}
	}
	return args
}

// hides reports that path does not lead to what is there outside.
func (l *layout) hides(path string) bool {
	for _, s := range l.shown {
		if within(path, s) {
			return false
		}
	}
	return within(path, run) || within(path, "/dev") || within(path, "/proc") || l.temp != "" && within(path, tmp)
}

// writableRoot returns the directory that path is in and that commands may write to, which is not that of temporary files.
func (l *layout) writableRoot(path string) (root, outside string) {
	for root, outside := range l.writable {
		if outside != l.temp && within(path, root) {
			return root, outside
		}
	}
	return "", ""
}

// answers reports whether a socket's file has a socket: the kernel's list may have passed over it.
func answers(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}) // of another type it is EPROTOTYPE, see unix(7)
	return !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT)
}

type boundSocket struct {
	path, inode string
	past        bool // it is not listed at present
}

// sockets knows the sockets in the file system that others may connect or send to.
type sockets struct {
	mu  sync.Mutex
	all map[string]boundSocket
}

const (
	maxLooks = 5
	maxSeen  = 10_000
)

// look returns every socket that was ever listed. The kernel goes on with its list at the position that it had reached, so
// that an entry is passed over when one before it goes; commands can bring that about. So it is read until nothing has
// changed, and what was listed once is remembered.
func (k *sockets) look() []boundSocket {
	now := map[string]boundSocket{}
	for n := range maxLooks {
		before := len(now)
		listed := boundSockets()
		for _, s := range listed {
			now[s.path] = s
		}
		if n > 0 && len(now) == before && len(listed) >= before {
			break
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) > maxSeen {
		k.all = nil
	}
	all := slices.Collect(maps.Values(now))
	for path, s := range k.all {
		if _, listed := now[path]; !listed {
			s.past = true
			all = append(all, s)
			now[path] = s
		}
	}
	k.all = now
	slices.SortFunc(all, func(a, b boundSocket) int { return strings.Compare(a.path, b.path) })
	return all
}

// boundSockets reads the kernel's list once.
func boundSockets() []boundSocket {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	const (
		listening = "00010000" // __SO_ACCEPTCON
		datagram  = "0002"
	)
	var found []boundSocket
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 16<<10), 1<<20) // the fewer reads, the less changes between them
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(" /")) {
			continue // most sockets have no name
		}
		// Num RefCount Protocol Flags Type St Inode Path; a path may have spaces.
		fields := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", 8)
		if len(fields) < 8 || fields[3] != listening && fields[4] != datagram {
			continue
		}
		_, path, _ := strings.Cut(lines.Text(), " "+fields[6]+" ")
		if filepath.IsAbs(path) {
			found = append(found, boundSocket{path: path, inode: fields[6]})
		}
	}
	return found
}

// heldSockets returns the inodes of the sockets that this process's descendants hold, and it does not itself: a child has
// a copy of everything from fork to exec.
func heldSockets() map[string]bool {
	held := map[string]bool{}
	for todo := children(os.Getpid()); len(todo) > 0; {
		pid := todo[0]
		todo = append(todo[1:], children(pid)...)
		for _, inode := range socketsOf(pid) {
			held[inode] = true
		}
	}
	for _, inode := range socketsOf(os.Getpid()) {
		delete(held, inode)
	}
	return held
}

// socketsOf returns the inodes of the sockets that a process holds.
func socketsOf(pid int) (inodes []string) {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}

func children(pid int) []int {
	var pids []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
