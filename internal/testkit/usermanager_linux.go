package testkit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// World is a part of the machine that a test has for itself: mount, pid and cgroup namespaces, and a cgroup as the root
// of the latter. What the test leaves there is gone with it; what is outside cannot be reached by a mistake.
type World struct {
	// UserManager has a real systemd --user running. Started anywhere else, it would take over the machine's cgroups.
	UserManager bool
	// UID is who the test is; the cgroups of the world are delegated to it.
	UID int
	// Cgroups says what there is at /sys/fs/cgroup.
	Cgroups CgroupMount
}

// CgroupMount is a state of /sys/fs/cgroup.
type CgroupMount string

// The states of /sys/fs/cgroup.
const (
	CgroupsWritable CgroupMount = "" // a version 2 hierarchy alone
	CgroupsReadOnly CgroupMount = "read-only"
	CgroupsHidden   CgroupMount = "hidden" // nothing is mounted
)

const insideVariable = "TESTKIT_INSIDE"

// In runs the calling test again inside w, and reports whether this is the run inside. A test begins with it, and
// returns when it is false; the run inside decides how the test ends.
func In(t *testing.T, w World) bool {
	t.Helper()
	if os.Getenv(insideVariable) == t.Name() {
		return true
	}
	Need(t, "root", os.Geteuid() == 0)
	for _, program := range []string{"sh", "unshare", "mount", "umount", "setpriv"} {
		NeedProgram(t, program)
	}
	if w.UserManager {
		NeedProgram(t, "systemctl")
		_, err := os.Stat("/lib/systemd/systemd")
		Need(t, "systemd", err == nil)
	}
	root := makeCgroup(t)
	cmd := exec.Command("sh", "-c", enterWorld, "world", root, "sh", "-euc", makeWorld, "world", os.Args[0],
		"-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), insideVariable+"="+t.Name(),
		"WORLD_MANAGER="+strconv.FormatBool(w.UserManager), "WORLD_UID="+strconv.Itoa(w.UID), "WORLD_CGROUPS="+string(w.Cgroups))
	// The kernel means the thread, not the process.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	switch got := string(out); {
	case err == nil && strings.Contains(got, "--- PASS: "+t.Name()+" "):
		if testing.Verbose() {
			t.Logf("inside:\n%s", got)
		}
	case err == nil && strings.Contains(got, "--- SKIP: "+t.Name()+" "):
		t.Skipf("inside:\n%s", got)
	default:
		t.Errorf("inside: %v\n%s", err, got)
	}
	return false
}

// enterWorld moves into the cgroup $1, which is the root of the world's cgroups then, and into the namespaces.
const enterWorld = `echo $$ >"$1/cgroup.procs"; shift
exec unshare --mount --pid --fork --cgroup --kill-child --propagation private --mount-proc -- "$@"`

// makeWorld is the first process of the pid namespace. Everything in it ends with this shell.
const makeWorld = `
umount -R /sys/fs/cgroup
case $WORLD_CGROUPS in
hidden) mount -t tmpfs -o ro,mode=555 none /sys/fs/cgroup;;
*) mount -t cgroup2 cgroup2 /sys/fs/cgroup;;
esac
if [ "$WORLD_CGROUPS" = read-only ]; then mount -o remount,bind,ro /sys/fs/cgroup; fi
as=
if [ "$WORLD_MANAGER" = true ] || [ "$WORLD_UID" != 0 ]; then
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p /run/systemd/system /run/user/$WORLD_UID
	chmod 700 /run/user/$WORLD_UID
	export XDG_RUNTIME_DIR=/run/user/$WORLD_UID DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$WORLD_UID/bus
fi
if [ "$WORLD_UID" != 0 ]; then
	as="setpriv --reuid $WORLD_UID --regid $WORLD_UID --clear-groups --"
	mkdir -m 700 /run/home /run/tmp
	touch /run/program
	mount --bind "$1" /run/program
	chown $WORLD_UID:$WORLD_UID /run/user/$WORLD_UID /run/home /run/tmp
	export HOME=/run/home TMPDIR=/run/tmp
	shift
	set -- /run/program "$@"
	cd /
	if [ -z "$WORLD_CGROUPS" ]; then
		chown $WORLD_UID:$WORLD_UID /sys/fs/cgroup /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/cgroup.subtree_control /sys/fs/cgroup/cgroup.threads
	fi
fi
if [ "$WORLD_MANAGER" = true ]; then
	$as mkdir /sys/fs/cgroup/manager.service /sys/fs/cgroup/session.scope
	$as sh -c 'echo $$ >/sys/fs/cgroup/manager.service/cgroup.procs; exec /lib/systemd/systemd --user --log-target=console --log-level=err' &
	echo $$ >/sys/fs/cgroup/session.scope/cgroup.procs
	tries=0
	until case $($as systemctl --user is-system-running 2>/dev/null || :) in running | degraded) ;; *) false ;; esac; do
		tries=$((tries + 1))
		if [ $tries = 500 ]; then echo "the user manager does not come up" >&2; exit 1; fi
		sleep 0.02
	done
fi
status=0
$as "$@" || status=$?
exit $status
`

// makeCgroup returns a new cgroup below our own, which goes with the test.
func makeCgroup(t *testing.T) string {
	t.Helper()
	own := ownCgroup()
	Need(t, "a writable cgroup of version 2", own != "" && syscall.Access(own, 2) == nil)
	root, err := os.MkdirTemp(own, "testkit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(root, "cgroup.kill"), []byte("1"), 0); err != nil {
			t.Error(err)
		}
		Eventually(t, 10*time.Second, "the cgroup "+root+" is gone", func() bool { return removeCgroup(root) })
	})
	return root
}

// removeCgroup removes a cgroup and all below it, and reports whether none is left.
func removeCgroup(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	err := syscall.Rmdir(dir)
	return err == nil || err == syscall.ENOENT
}

func cgroups(path string) (n int) {
	root := filepath.Join(cgroupMount(), path)
	_ = filepath.WalkDir(root, func(dir string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && dir != root {
			n++
		}
		return nil // what goes meanwhile does not count
	})
	return n
}

// ownCgroup returns the directory of this process's cgroup of version 2; empty if there is none.
func ownCgroup() string {
	path := ""
	membership, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(membership)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = rest
		}
	}
	if mount := cgroupMount(); mount != "" && path != "" {
		return filepath.Join(mount, path)
	}
	return ""
}

// cgroupMount returns where the hierarchy of version 2 is mounted; empty if it is nowhere.
func cgroupMount() string {
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return ""
	}
	defer mounts.Close()
	for s := bufio.NewScanner(mounts); s.Scan(); {
		var device, dir, kind string
		if _, err := fmt.Sscan(s.Text(), &device, &dir, &kind); err == nil && kind == "cgroup2" {
			return dir
		}
	}
	return ""
}
