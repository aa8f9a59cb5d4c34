package sandboxlocal

import (
	"context"
	"fmt"
	"sync"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"dsh/modules/sandbox"
)

// landlocked confines with a Landlock ruleset on the thread that forks.
type landlocked struct {
	*machine
	abi func() int

	rulesets cache[granted] // by policy
}

// granted is a ruleset for the directories that it was made for.
type granted struct {
	*ruleset
	made identity
}

func newLandlock(m *machine) *landlocked {
	return &landlocked{machine: m, abi: sync.OnceValue(kernelABI)}
}

// kernelABI returns the version of Landlock that the kernel has; 0: none, or it is switched off.
func kernelABI() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

func (l *landlocked) name() string { return BackendLandlock }

func (l *landlocked) executesFailed() bool { return false }

func (l *landlocked) confine(_ context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	temp, err := l.temp(r.Policy)
	if err != nil {
		return nil, err
	}
	rules, err := l.ruleset(r.Policy, temp)
	if err != nil {
		return nil, err
	}
	s := r.Spec
	s.Env = commandEnv(s.Env, temp)
	s.OnThread = both(rules.restrict(r.Policy.Mode, dropPrivileges), r.Spec.OnThread)
	enforcement, open := l.describe()
	return &sandbox.Confined{
		Spec: s, Backend: l.name(), Enforcement: enforcement, NotEnforced: open,
		Evidence: sandbox.Evidence{Denials: []string{"permission denied"}, Ambiguous: true},
	}, nil
}

func (l *landlocked) probe(ctx context.Context) error { return l.tryOut(ctx, l.confine) }

// ABI versions at which the kernel learned something.
const (
	abiRefer       = 2
	abiTruncate    = 3
	abiIoctl       = 5
	abiScopes      = 6
	abiResolveUnix = 9
)

func (l *landlocked) describe() (sandbox.Enforcement, []string) {
	open := []string{
		"the mode, owner, times and extended attributes of files outside of the workspace, where this user may change them",
		"reading every file that this user can read; the host's /tmp and processes are visible",
		"the network, and servers of this machine that listen on it",
		"mount(2) is refused, so bubblewrap, `unshare -m` and containers do not work inside",
	}
	abi := l.abi()
	if abi < abiResolveUnix {
		open = append(open, "sockets in the file system, such as those of the user's and the system's bus")
	}
	if abi < abiScopes {
		open = append(open, "abstract sockets of other programs, and signals to them")
	}
	if abi < abiTruncate {
		open = append(open, "truncating files outside of the workspace, where this user may write")
	}
	return sandbox.Partial, open
}

// ruleset returns the ruleset for p, made anew when the directories that it opens are others than before.
func (l *landlocked) ruleset(p sandbox.Policy, temp string) (*granted, error) {
	now := l.identify(p.WorkspaceRoot, temp)
	if g := l.rulesets.of(p); g != nil && g.made == now {
		return g, nil
	}
	protected, err := l.protected(p)
	if err != nil {
		return nil, err
	}
	for _, o := range protected {
		if p.Mode == sandbox.WorkspaceWrite && within(o.dir, p.WorkspaceRoot) {
			return nil, &refusalError{reason: fmt.Sprintf(
				"the workspace %s contains %s, which holds dsh's own files; Landlock cannot protect a part of what it opens",
				p.WorkspaceRoot, o.dir)}
		}
	}
	abi := l.abi()
	if abi == 0 {
		return nil, &brokenError{reason: "this kernel has no Landlock, or it is switched off (see the boot parameter lsm=)"}
	}
	var rules []landlock.Rule
	grant := func(rights landlock.AccessFSSet, paths ...string) {
		// A path that is not there is nothing to open.
		rules = append(rules, landlock.PathAccess(rights, paths...).IgnoreIfMissing())
	}
	grant(onFiles(abi), devnul, "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts")
	grant(onFiles(abi), l.config.Devices...)
	grant(onDirs(abi), temp)
	if p.Mode == sandbox.WorkspaceWrite {
		grant(onDirs(abi), p.WorkspaceRoot, shm)
	}
	c := landlock.Config{HandledAccessFS: handled(abi)}
	if abi >= abiScopes {
		c.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	made, err := newRuleset(c, rules...)
	if err != nil {
		return nil, &brokenError{reason: err.Error()}
	}
	g := &granted{ruleset: made, made: now}
	l.rulesets.keep(p, g)
	return g, nil
}

// onFiles are the rights to use a file without changing what there is.
func onFiles(abi int) landlock.AccessFSSet {
	rights := landlock.AccessFSSet(ll.AccessFSWriteFile)
	if abi >= abiTruncate {
		rights |= ll.AccessFSTruncate
	}
	if abi >= abiIoctl {
		rights |= ll.AccessFSIoctlDev
	}
	return rights
}

// onDirs are the rights to do everything beneath a directory but to make devices.
func onDirs(abi int) landlock.AccessFSSet {
	return handled(abi) &^ (ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSIoctlDev)
}

// handled are the rights that nobody has who was not granted them: those that change something.
func handled(abi int) landlock.AccessFSSet {
	rights := onFiles(abi) | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym
	if abi >= abiRefer {
		rights |= ll.AccessFSRefer
	}
	if abi >= abiResolveUnix {
		rights |= ll.AccessFSResolveUnix
	}
	return rights
}
