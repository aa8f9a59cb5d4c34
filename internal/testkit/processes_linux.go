package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children returns a line for each child of this process, zombies included.
func children() []string {
	var lines []string
	lists, _ := filepath.Glob("/proc/self/task/*/children") // see proc_pid_task(5)
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(pids)) {
			argv, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			lines = append(lines, fmt.Sprintf("%s %s", pid, strings.ReplaceAll(string(argv), "\x00", " ")))
		}
	}
	return lines
}

// Processes returns the pids of all processes on the machine that have exactly these arguments, zombies excluded.
func Processes(argv ...string) []int {
	want := strings.Join(argv, "\x00") + "\x00"
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if got, _ := os.ReadFile(file); string(got) == want {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
