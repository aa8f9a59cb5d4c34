package sandboxpolicy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/sandbox"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config    Config
	Overrides sandbox.Overrides `optional:"true"`
	Prompt    agent.Prompt      `optional:"true"`
}

// Result is what New gives.
type Result struct {
	fx.Out

	Policies sandbox.Policies
	Runner   module.Runner
}

// Module returns the module sandbox-policy.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "sandbox-policy",
		Aliases:     []string{"@deepseek-ai/dsh-sandbox-policy"},
		Summary:     "says what commands may do to files, and where",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns the policies of p.Config.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	if root := p.Config.WorkspaceRoot; root != "" && !filepath.IsAbs(root) {
		return Result{}, module.Field("workspaceRoot", "must be an absolute path here, got %q", root)
	}
	all := &policies{config: p.Config, overrides: p.Overrides}
	return Result{Policies: all, Runner: telling(p.Prompt, all)}, nil
}

type policies struct {
	config    Config
	overrides sandbox.Overrides
}

var _ sandbox.Policies = (*policies)(nil)

// Default implements sandbox.Policies.
func (p *policies) Default() sandbox.Mode { return p.config.Mode }

// Resolve implements sandbox.Policies.
func (p *policies) Resolve(ctx context.Context, s sandbox.Session, approved sandbox.Mode) (sandbox.Policy, error) {
	if ctx.Err() != nil {
		return sandbox.Policy{}, context.Cause(ctx)
	}
	mode, err := p.mode(ctx, s, approved)
	if err != nil {
		return sandbox.Policy{}, err
	}
	root := s.CWD
	if root == "" {
		root = p.config.WorkspaceRoot
	}
	real, err := canonical(root)
	if err != nil {
		return sandbox.Policy{}, &sandbox.WorkspaceError{Root: root, Err: err}
	}
	return sandbox.Policy{Mode: mode, WorkspaceRoot: real, SessionID: s.ID}, nil
}

func (p *policies) mode(ctx context.Context, s sandbox.Session, approved sandbox.Mode) (sandbox.Mode, error) {
	if approved != "" {
		if !approved.Valid() {
			return "", fmt.Errorf("unknown sandbox mode %q", string(approved))
		}
		return approved, nil
	}
	if p.overrides == nil || s.ID == "" {
		return p.config.Mode, nil
	}
	mode, ok, err := p.overrides.SandboxMode(ctx, s.ID)
	switch {
	case err != nil:
		return "", fmt.Errorf("the sandbox mode of session %q: %w", s.ID, err)
	case !ok:
		return p.config.Mode, nil
	case !mode.Valid():
		return "", fmt.Errorf("session %q has the unknown sandbox mode %q", s.ID, string(mode))
	}
	return mode, nil
}

// canonical returns the directory that root leads to, without symbolic links.
func canonical(root string) (string, error) {
	if !filepath.IsAbs(root) {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		// Not filepath.Join, which cleans.
		root = wd + string(filepath.Separator) + root
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "stat", Path: real, Err: syscall.ENOTDIR}
	}
	return real, nil
}
