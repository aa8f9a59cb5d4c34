package sandboxlocal

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"dsh/modules/sandbox"
)

// ruleset is a Landlock ruleset that any number of threads can be put under.
type ruleset struct {
	file  *os.File
	flags uint32
}

func newRuleset(c landlock.Config, rules ...landlock.Rule) (*ruleset, error) {
	fd, flags, err := c.NewRulesetFD(rules...)
	if err != nil {
		return nil, err
	}
	if fd < 0 {
		return nil, errors.New("the kernel's Landlock restricts nothing")
	}
	return &ruleset{file: os.NewFile(uintptr(fd), "landlock ruleset"), flags: flags}, nil
}

// abstractScope returns the ruleset that keeps from abstract sockets of other programs and restricts nothing else; nil
// if the kernel knows none.
func abstractScope() *ruleset {
	if kernelABI() < abiScopes {
		return nil
	}
	r, err := newRuleset(landlock.Config{Scoped: ll.ScopeAbstractUnixSocket})
	if err != nil {
		return nil
	}
	return r
}

// restrict returns what puts the thread that calls it, and what it forks, under the ruleset for good. Before that it
// calls prepare, unless that is nil. Its errors are the sandbox's.
func (r *ruleset) restrict(mode sandbox.Mode, prepare func() error) func() error {
	return func() error {
		defer runtime.KeepAlive(r.file)
		var err error
		if unix.Gettid() == os.Getpid() {
			// It would stay restricted, and a command under the same restriction could trace it, and so the host.
			err = errors.New("the thread that forks is the host's main thread")
		} else if prepare != nil {
			err = prepare()
		}
		if err == nil {
			if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
				err = ll.LandlockRestrictSelf(int(r.file.Fd()), r.flags)
			}
		}
		if err != nil {
			return &sandbox.UnavailableError{Mode: mode, Reason: fmt.Sprintf("landlock: %v", err)}
		}
		return nil
	}
}

// dropPrivileges takes all of root's capabilities from this thread but the one to use files of other users, which Landlock
// still confines. What the thread executes cannot have more: with no-new-privileges, which comes next, not even a program
// of root's gains a capability that its parent had not (cap_bprm_creds_from_file in the kernel's commoncap.c). A fork needs
// none of the others.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	kept := data[0].Permitted & (1 << unix.CAP_DAC_OVERRIDE)
	data = [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
