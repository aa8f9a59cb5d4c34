package testkit_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
)

func TestUserManagerOfTheWorld(t *testing.T) {
	for name, uid := range map[string]int{"root": 0, "ordinary user": 65534} {
		t.Run(name, func(t *testing.T) {
			if !testkit.In(t, testkit.World{UserManager: true, UID: uid}) {
				return
			}
			if got := os.Geteuid(); got != uid {
				t.Errorf("got uid %d", got)
			}
			start := time.Now()
			out, err := exec.Command("systemd-run", "--user", "--scope", "--quiet", "cat", "/proc/self/cgroup").CombinedOutput()
			if err != nil || !strings.Contains(string(out), ".scope") || !strings.Contains(string(out), "manager.service") {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("systemd-run took %v", time.Since(start))
		})
	}
}

func TestCgroupsOfTheWorld(t *testing.T) {
	for name, w := range map[string]testkit.World{
		"writable": {}, "delegated": {UID: 65534},
		"read-only": {Cgroups: testkit.CgroupsReadOnly}, "hidden": {Cgroups: testkit.CgroupsHidden},
	} {
		t.Run(name, func(t *testing.T) {
			if !testkit.In(t, w) {
				return
			}
			err := os.Mkdir("/sys/fs/cgroup/try", 0o755)
			if writable := w.Cgroups == testkit.CgroupsWritable; (err == nil) != writable {
				t.Errorf("making a cgroup: %v", err)
			}
			if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); (err != nil) != (w.Cgroups == testkit.CgroupsHidden) {
				t.Errorf("a cgroup mount: %v", err)
			}
			if pid := os.Getpid(); pid > 100 {
				t.Errorf("not in a pid namespace of its own: pid %d", pid)
			}
		})
	}
}

func TestAWorldFailsWithItsTest(t *testing.T) {
	if os.Getenv("TESTKIT_FAILING") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAWorldFailsWithItsTest$")
		cmd.Env = append(os.Environ(), "TESTKIT_FAILING=1")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "as it should") {
			t.Errorf("got %v\n%s", err, out)
		}
		return
	}
	if testkit.In(t, testkit.World{}) {
		t.Error("as it should")
	}
}
