package subprocesslocal

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process or thread.
type stat struct {
	state                  byte
	parent, group, session int
	start                  uint64 // in ticks since boot: with the pid, it names a process for good
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }
func (s stat) busy() bool { return s.state == 'R' || s.state == 'D' }

// readStat returns false for what does not exist any more.
func readStat(path string) (stat, bool) {
	var buf [512]byte
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
	return s, true
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

// cookieOf returns the value of DSH_RANGE in the environment that a process was started with. known is false while the
// kernel puts a new program in its place: it shows no environment then, and no arguments either.
func cookieOf(pid int) (cookie string, known bool) {
	cookie, length := environCookie(pid)
	if length != 0 {
		return cookie, true
	}
	if readInto(proc(pid, "/cmdline"), make([]byte, 1)) == 0 {
		return "", false
	}
	// It was started with no environment, or got one since.
	cookie, _ = environCookie(pid)
	return cookie, true
}

// environCookie returns the cookie and the length of an environment; -1 if it may not be read.
func environCookie(pid int) (cookie string, length int) {
	environ, err := os.ReadFile(proc(pid, "/environ"))
	if err != nil {
		return "", -1
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(cookieName+"=")); ok {
			return string(value), len(environ)
		}
	}
	return "", len(environ)
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
