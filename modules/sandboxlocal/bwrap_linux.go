package sandboxlocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
)

// bwrap confines with bubblewrap.
type bwrap struct {
	*machine

	mu       sync.Mutex
	path     string        // empty: to be looked for
	setuid   bool          // it has rights of its own, which no-new-privileges would take away
	scope    *ruleset      // keeps abstract sockets of others away; nil: the kernel cannot
	profiles cache[layout] // by policy
	seen     sockets
}

func newBwrap(m *machine) *bwrap { return &bwrap{machine: m} }

func (b *bwrap) name() string { return BackendBwrap }

func (b *bwrap) executesFailed() bool { return false }

// locate finds the program, once until a probe fails.
func (b *bwrap) locate(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		return b.path, nil
	}
	path, err := b.runtime.ResolveExecutable(ctx, "bwrap")
	if err != nil {
		return "", &brokenError{reason: err.Error()}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", &brokenError{reason: err.Error()}
	}
	b.path, b.setuid = path, info.Mode()&os.ModeSetuid != 0 && os.Geteuid() != 0
	if b.scope == nil && !b.setuid {
		b.scope = abstractScope()
	}
	return path, nil
}

func (b *bwrap) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.path = ""
}

func (b *bwrap) confine(ctx context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	path, err := b.locate(ctx)
	if err != nil {
		return nil, err
	}
	argv, err := b.arguments(r)
	if err != nil {
		return nil, err
	}
	status, err := newStatus()
	if err != nil {
		return nil, err
	}
	s := r.Spec
	// The next number after what the caller hands over; Spawn counts from 3.
	fd := 3 + len(s.ExtraFiles)
	s.ExtraFiles = append(s.ExtraFiles[:len(s.ExtraFiles):len(s.ExtraFiles)], status.write)
	s.Argv = append(append([]string{path}, argv...), "--json-status-fd", fmt.Sprint(fd), "--")
	s.Argv = append(append(s.Argv, program(r.Spec)), r.Spec.Argv[1:]...)
	s.Path, s.Dir, s.Wrapper = "", "/", true
	s.Env = runnerEnv(r.Spec.Env)
	if b.scope != nil {
		s.OnThread = both(b.scope.restrict(r.Policy.Mode, nil), r.Spec.OnThread)
	}
	enforcement, open := b.describe()
	return &sandbox.Confined{
		Spec: s, Backend: b.name(), Enforcement: enforcement, NotEnforced: open,
		Evidence: sandbox.Evidence{
			Denials: []string{"read-only file system"},
			Runner:  path, Status: status.executed, Underway: status.underway, Release: status.close,
		},
	}, nil
}

// program returns the program of s, by its path where there is one: the runner would look for a name by other rules.
func program(s subprocess.Spec) string {
	if s.Path != "" {
		return s.Path
	}
	return s.Argv[0]
}

// both returns a function that calls first and then, unless it is nil, second.
func both(first, second func() error) func() error {
	if second == nil {
		return first
	}
	return func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	}
}

func (b *bwrap) describe() (sandbox.Enforcement, []string) {
	var open []string
	if b.config.Network == NetworkHost {
		open = append(open, "the network, and servers of this machine that listen on it")
		b.mu.Lock()
		if b.scope == nil {
			open = append(open, "abstract sockets of other programs")
		}
		b.mu.Unlock()
	}
	return sandbox.Full, append(open,
		"reading every file that this user can read, outside of /run and /dev",
		"sockets in the file system that are reachable under another path than they were made with")
}

// probe runs a program under the narrowest policy, with the arguments that any command gets.
func (b *bwrap) probe(ctx context.Context) error {
	b.forget()
	err := b.tryOut(ctx, b.confine)
	if err != nil {
		b.forget()
	}
	return err
}

// probeGrace is what a probe that hangs has left once its time is up. There is nothing that it could bring to an end.
const probeGrace = 100 * time.Millisecond

// tryOut runs `true` as confine has it, and returns the runner's own words if that fails.
func (m *machine) tryOut(ctx context.Context, confine func(context.Context, sandbox.Request) (*sandbox.Confined, error)) error {
	limit := time.Duration(m.config.ProbeTimeoutMs) * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the probe took longer than %v", limit))
	defer cancel()
	program, err := m.runtime.ResolveExecutable(ctx, "true")
	if err != nil {
		return err
	}
	c, err := confine(ctx, sandbox.Request{
		Policy: sandbox.Policy{Mode: sandbox.ReadOnly, WorkspaceRoot: "/"},
		Spec: subprocess.Spec{
			Argv: []string{program}, Dir: "/", Grace: probeGrace,
			Stdout: subprocess.Output{Collect: &subprocess.Collect{}},
			Stderr: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 4096}},
		},
	})
	if err != nil {
		return err
	}
	w := c.Evidence.Watch()
	p, err := m.runtime.Spawn(ctx, c.Spec)
	if err != nil {
		w.Abandon()
		if reason, ok := c.Evidence.RunnerRefused(err); ok {
			return &brokenError{reason: reason}
		}
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		p.Terminate()
		<-p.Done()
		w.Abandon()
		return context.Cause(ctx)
	}
	outcome, err := p.Outcome()
	if err != nil {
		w.Abandon()
		return err
	}
	w.Stderr(p.Stderr().Collected().Tail)
	switch v := w.End(outcome, false); {
	case v.RunnerFailed:
		return &brokenError{reason: explained(v.Reason)}
	case outcome.Signal != "":
		return &brokenError{reason: "the probe was killed by " + outcome.Signal}
	case outcome.ExitCode != 0:
		return &brokenError{reason: fmt.Sprintf("the probe exited with status %d", outcome.ExitCode)}
	}
	return nil
}

// explained adds to a runner's words what they commonly mean.
func explained(reason string) string {
	for _, sign := range []string{"uid map", "new namespace", "user namespace", "unshare"} {
		if strings.Contains(strings.ToLower(reason), sign) {
			return reason + " (unprivileged user namespaces may be restricted here: see the sysctls " +
				"kernel.unprivileged_userns_clone, user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns)"
		}
	}
	return reason
}

// status is the descriptor on which bubblewrap tells what it did.
type status struct {
	read, write *os.File

	mu     sync.Mutex
	told   []byte
	closed bool
}

func newStatus() (*status, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("status of the sandbox runner: %w", err)
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(p[0]), unix.Close(p[1]))
	}
	return &status{read: os.NewFile(uintptr(p[0]), "sandbox status"), write: os.NewFile(uintptr(p[1]), "sandbox status")}, nil
}

// executed reports whether the document with the exit code was written. It is there exactly if the command was executed
// and ended; that of the child's pid comes before anything is certain. The runner has ended, so there is nothing to wait
// for, although its survivors may hold the other end.
func (s *status) executed() bool { return strings.Contains(s.documents(), `"exit-code"`) }

// childPID is what the first document says of the namespace's first process.
var childPID = regexp.MustCompile(`"child-pid":\s*(\d+)`)

// underway reports whether the namespace's first process, which makes the mounts, has gone on to fork the command.
func (s *status) underway() bool {
	m := childPID.FindStringSubmatch(s.documents())
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	return err == nil && len(children(pid)) > 0
}

// documents returns what was written so far.
func (s *status) documents() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return string(s.told)
	}
	fd := int(s.read.Fd())
	for buf := make([]byte, 1024); len(s.told) < 1<<16; {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			break
		}
		s.told = append(s.told, buf[:n]...)
	}
	return string(s.told)
}

func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.read.Close()
		s.write.Close() // closed already, if the process was spawned
	}
}
