package subprocesslocal_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/subprocesslocal"
)

const hostVariable = "TEST_AS_HOST"

// TestHost is a host of its own when TestPrepareHost starts this program again, under a parent that ignores signals, with
// signals blocked and a descriptor that is not close-on-exec.
func TestHost(t *testing.T) {
	if os.Getenv(hostVariable) == "" {
		return
	}
	if err := subprocesslocal.PrepareHost(); err != nil {
		t.Fatal(err)
	}
	rt := start(t)
	p := spawn(t, rt, collected([]string{"bash", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status; echo /proc/self/fd/*; cat /proc/$PPID/environ"}))
	<-p.Done()
	out := string(p.Stdout().Collected().Tail)
	for _, want := range []string{"SigBlk:\t0000000000000000\n", "SigIgn:\t0000000000000000\n", "\n/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q in it", out, want)
		}
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 0 || err != nil {
		t.Errorf("dumpable is %d, %v", dumpable, err)
	}
}

func TestPrepareHost(t *testing.T) {
	t.Parallel()
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	// A shell that ignores signals hands that down, but for those that a C library keeps for its threads; so does this process
	// for a while. A thread with a mask hands the mask down.
	ignored := [64]byte{1} // a struct sigaction of SIG_IGN, little-endian
	for n := uintptr(32); n <= 34; n++ {
		var before [64]byte
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&ignored)), uintptr(unsafe.Pointer(&before)), 8, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
		defer func() {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&before)), 0, 8, 0, 0)
		}()
	}
	cmd := exec.Command("bash", "-c", `trap "" HUP INT QUIT PIPE TSTP TTIN TTOU CHLD CONT USR1; exec "$0" -test.run '^TestHost$' -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), hostVariable+"=1")
	cmd.ExtraFiles = []*os.File{leak, leak}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked
		var mask unix.Sigset_t
		for i := range mask.Val {
			mask.Val[i] = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGUSR2-1) | 1<<(unix.SIGPIPE-1)
		}
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil); err != nil {
			done <- err
			return
		}
		done <- cmd.Run()
	}()
	if err := <-done; err != nil || !strings.Contains(out.String(), "--- PASS: TestHost") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestOrdinaryUser runs what permissions decide as somebody who is not root.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // all tests are run so
	}
	home := t.TempDir()
	for dir := home; dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil && dir == home {
			t.Fatal(err)
		}
		if filepath.Dir(dir) == os.TempDir() {
			break
		}
	}
	program, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	// The program is in a directory that only root may enter: it is handed over as a descriptor.
	cmd := exec.Command("/proc/self/fd/3", "-test.run", "^TestConformance$/^(refusals|ranges|stdin)$", "-test.v")
	cmd.ExtraFiles = []*os.File{program}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+home, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConformance/refusals/directory/closed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestUnattributableEndsAtStop has an orphan in a session of its own, without an environment.
func TestUnattributableEndsAtStop(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestUnattributable$", "-test.v")
	cmd.Env = append(os.Environ(), hostVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestUnattributable") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestUnattributable is run in a process of its own, as what cannot be attributed ends with the last runtime only.
func TestUnattributable(t *testing.T) {
	if os.Getenv(hostVariable) == "" {
		return
	}
	res, err := subprocesslocal.New(subprocesslocal.Params{Config: subprocesslocal.DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := collected([]string{"bash", "-c", `(env -i /usr/bin/setsid /bin/bash -c 'echo $$ >pid; exec /bin/sleep 4301' >/dev/null 2>&1 &); while [ ! -s pid ]; do sleep 0.01; done; cat pid`})
	s.Dir = dir
	p := spawn(t, res.Runtime, s)
	<-p.Done()
	pid := strings.TrimSpace(string(p.Stdout().Collected().Tail))
	if _, err := os.Stat("/proc/" + pid + "/stat"); pid == "" || err != nil {
		t.Fatalf("the orphan %q is not there: %v", pid, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := res.Runner.Stop(ctx); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Errorf("the orphan %s outlived the runtime", pid)
	}
}

// TestCookieOfANestedHost has a host below a command of another: its commands carry both ids.
func TestCookieOfANestedHost(t *testing.T) {
	t.Setenv("DSH_RANGE", "0123456789abcdef")
	rt := start(t)
	p := spawn(t, rt, collected([]string{"bash", "-c", "echo $DSH_RANGE; (setsid sleep 4302 >/dev/null 2>&1 &)"}))
	<-p.Done()
	// The outer range, this host, this range.
	ids := strings.Split(strings.TrimSpace(string(p.Stdout().Collected().Tail)), ":")
	if len(ids) != 3 || ids[0] != "0123456789abcdef" || len(ids[1]) != 16 || len(ids[2]) != 16 {
		t.Errorf("got %q", ids)
	}
	if p.Survivors() != 1 {
		t.Errorf("got %d survivors", p.Survivors())
	}
	p.Terminate()
	if err := p.Quiesce(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTwoRuntimes has the children of another runtime, and of os/exec, in the same process: none is taken for an orphan.
func TestTwoRuntimes(t *testing.T) {
	rt := start(t)
	_ = start(t)
	plain := subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)})
	for range 50 {
		var all []subprocess.Process
		for _, rt := range []subprocess.Runtime{rt, plain.Runtime} {
			for range 4 {
				all = append(all, spawn(t, rt, collected([]string{"bash", "-c", "(setsid true &) ; exit 3"})))
			}
		}
		if err := exec.Command("false").Run(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("a child of os/exec: got %v", err)
		}
		for _, p := range all {
			if o, err := p.Outcome(); err != nil || o.ExitCode != 3 {
				t.Errorf("got %+v, %v", o, err)
			}
		}
	}
}
