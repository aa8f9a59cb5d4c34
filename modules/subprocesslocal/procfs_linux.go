package subprocesslocal

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process or thread (proc_pid_stat(5)).
type stat struct {
	state                  byte
	parent, group, session int
	start                  uint64 // in ticks since boot: with the pid, it names a process for good
	// bare says that the program was given no environment. execve(2) enters where the environment is before it enters
	// where the code is: so while it is at work, no program is bare.
	bare bool
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }
func (s stat) busy() bool { return s.state == 'R' || s.state == 'D' }

// readStat returns false for what does not exist any more.
func readStat(path string) (stat, bool) {
	var buf [1024]byte
	n := readInto(path, buf[:])
	// The second field is the program's name in parentheses, which may contain anything.
	i := bytes.LastIndexByte(buf[:n], ')')
	if i < 0 || i+2 > n {
		return stat{}, false
	}
	f := bytes.Fields(buf[i+1 : n])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, false
	}
	s := stat{state: f[0][0], parent: number(f[1]), group: number(f[2]), session: number(f[3])}
	s.start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	if len(f) > 48 {
		const code, environ, environEnd = 23, 47, 48
		s.bare = number(f[code]) > 1 && bytes.Equal(f[environ], f[environEnd]) // 1: who asks may not know
	}
	return s, true
}

// readProcess is readStat for a whole process. It lives while one of its threads does, which need not be the first; thread
// is the id of one that lives, if there is one.
func readProcess(pid int) (s stat, thread string, ok bool) {
	s, ok = readStat(proc(pid, "/stat"))
	if !ok || !s.dead() {
		return s, strconv.Itoa(pid), ok
	}
	for _, thread := range threads(pid) {
		if t, ok := readStat(proc(pid, "/task/"+thread+"/stat")); ok && !t.dead() {
			s.state = t.state
			return s, thread, true
		}
	}
	return s, "", true
}

func number(b []byte) int {
	n, _ := strconv.Atoi(string(b))
	return n
}

func proc(pid int, rest string) string { return "/proc/" + strconv.Itoa(pid) + rest }

// readInto reads the beginning of a file of /proc, without the cost of an *os.File.
func readInto(path string, buf []byte) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf)
	return max(n, 0)
}

// threads returns the ids of a process's threads.
func threads(pid int) []string {
	dir, err := os.Open(proc(pid, "/task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// children returns the children of one thread, dead ones that were not waited for included.
func childrenOf(path string) []int {
	list, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return pids(list)
}

func pids(list []byte) []int {
	fields := bytes.Fields(list)
	pids := make([]int, 0, len(fields))
	for _, f := range fields {
		pids = append(pids, number(f))
	}
	return pids
}

// cookieOf returns the value of DSH_RANGE in the environment that the program of a thread was started with; none if we may
// not read it. known is false while the kernel puts a new program in the place of another, when there is no environment
// to be seen, and at the thread's end.
func cookieOf(pid int, thread string) (cookie string, known bool) {
	task := proc(pid, "/task/"+thread)
	environ, err := environOf(task)
	if err != nil {
		return "", errors.Is(err, unix.EACCES)
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(cookieName+"=")); ok {
			return string(value), true
		}
	}
	if len(environ) > 0 {
		return "", true
	}
	s, ok := readStat(task + "/stat")
	return "", ok && s.bare
}

// environOf returns the whole environment of one program. It is read at one stroke: a second read might find another
// program, or that the one of the first is gone, which looks like the end.
func environOf(task string) ([]byte, error) {
	for size := 16 << 10; ; size *= 8 {
		fd, err := unix.Open(task+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		buf := make([]byte, size)
		n, err := unix.Read(fd, buf)
		unix.Close(fd)
		if err != nil {
			return nil, err
		}
		if n < size {
			return buf[:n], nil
		}
	}
}

// isNamespaceInit reports whether a process is the first of a pid namespace below ours.
func isNamespaceInit(pid int) bool {
	status, err := os.ReadFile(proc(pid, "/status"))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	ids := bytes.Fields(line)
	return len(ids) > 1 && string(ids[len(ids)-1]) == "1"
}
