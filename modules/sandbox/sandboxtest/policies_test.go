package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
)

const (
	defaultFirst   defect = "puts the default before the session"
	sessionFirst   defect = "puts the session before an approval"
	approvalStays  defect = "keeps an approval"
	everySession   defect = "gives every session one session's choice"
	trustsFailures defect = "takes the default when a choice cannot be read"
	trustsWords    defect = "takes a mode that is none"
	trustsChoices  defect = "takes a choice that is none"
	oneRoot        defect = "has one workspace for all"
	cleansFirst    defect = "cleans a path before it follows it"
	followsNothing defect = "does not follow links"
	trustsPaths    defect = "does not look at the workspace"
	losesSession   defect = "forgets whose policy it is"
	resolvesLate   defect = "answers a caller that has gone"
)

type policies struct {
	broken    defect
	mode      sandbox.Mode
	root      string
	overrides sandbox.Overrides
	approved  atomic.Value
}

func (p *policies) Default() sandbox.Mode { return p.mode }

func (p *policies) Resolve(ctx context.Context, s sandbox.Session, approved sandbox.Mode) (sandbox.Policy, error) {
	if ctx.Err() != nil && p.broken != resolvesLate {
		return sandbox.Policy{}, context.Cause(ctx)
	}
	mode, err := p.choose(ctx, s, approved)
	if err != nil {
		return sandbox.Policy{}, err
	}
	root := s.CWD
	if root == "" || p.broken == oneRoot {
		root = p.root
	}
	if p.broken == cleansFirst {
		root = filepath.Clean(root)
	}
	if p.broken != followsNothing {
		real, err := filepath.EvalSymlinks(root)
		if err != nil && p.broken != trustsPaths {
			return sandbox.Policy{}, err
		}
		root = real
	}
	if info, err := os.Stat(root); p.broken != trustsPaths && (err != nil || !info.IsDir()) {
		return sandbox.Policy{}, fmt.Errorf("%s is no directory", root)
	}
	id := s.ID
	if p.broken == losesSession {
		id = ""
	}
	return sandbox.Policy{Mode: mode, WorkspaceRoot: root, SessionID: id}, nil
}

func (p *policies) choose(ctx context.Context, s sandbox.Session, approved sandbox.Mode) (sandbox.Mode, error) {
	if approved != "" && !approved.Valid() && p.broken != trustsWords {
		return "", errors.New("no mode")
	}
	if approved == "" && p.broken == approvalStays {
		approved, _ = p.approved.Load().(sandbox.Mode)
	}
	if approved != "" {
		p.approved.Store(approved)
	}
	if approved != "" && p.broken != sessionFirst {
		return approved, nil
	}
	if p.overrides == nil || p.broken == defaultFirst {
		return p.mode, nil
	}
	mode, ok, err := p.overrides.SandboxMode(ctx, s.ID)
	switch {
	case err != nil && s.ID != "" && p.broken != trustsFailures:
		return "", err
	case p.broken == everySession:
		return mode, nil
	case !ok && approved != "":
		return approved, nil
	case !ok:
		return p.mode, nil
	case !mode.Valid() && p.broken != trustsChoices:
		return "", errors.New("no mode")
	}
	return mode, nil
}

func opened(broken defect) OpenPolicies {
	return func(_ testing.TB, mode sandbox.Mode, root string, o sandbox.Overrides) sandbox.Policies {
		return &policies{broken: broken, mode: mode, root: root, overrides: o}
	}
}

func TestSuitePassesPoliciesThatKeepThePromises(t *testing.T) { RunPolicies(t, opened("")) }

func TestSuiteNoticesBrokenPolicies(t *testing.T) {
	for _, broken := range []defect{
		defaultFirst, sessionFirst, approvalStays, everySession, trustsFailures, trustsWords, trustsChoices, oneRoot, cleansFirst,
		followsNothing, trustsPaths, losesSession, resolvesLate,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			for _, c := range policyChecks() {
				if len(testkit.Faults(t, func(tb testing.TB) { c.check(tb, opened(broken)) })) > 0 {
					return
				}
			}
			t.Errorf("no check noticed policies that: %s", broken)
		})
	}
}
