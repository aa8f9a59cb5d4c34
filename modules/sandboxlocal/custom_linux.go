package sandboxlocal

import (
	"context"
	"slices"

	"dsh/modules/sandbox"
)

// custom confines with a program of the deployment's, which takes what bubblewrap takes. It is trusted to do so.
type custom struct {
	*machine
	profile *bwrap // makes the arguments, and is not used otherwise
}

func (c *custom) name() string { return BackendCustom }

// executesFailed implements backend: that a runner failed is read from what may as well be the command's own words.
func (c *custom) executesFailed() bool { return true }

func (c *custom) confine(ctx context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	path, err := c.runtime.ResolveExecutable(ctx, c.config.RunnerCommand[0])
	if err != nil {
		return nil, &brokenError{reason: err.Error()}
	}
	profile, err := c.profile.arguments(r)
	if err != nil {
		return nil, err
	}
	s := r.Spec
	s.Argv = slices.Concat([]string{path}, c.config.RunnerCommand[1:], profile, []string{"--", program(r.Spec)}, r.Spec.Argv[1:])
	s.Path, s.Wrapper = "", true // Dir stays: not every runner knows --chdir
	s.Env = runnerEnv(r.Spec.Env)
	enforcement, open := c.describe()
	return &sandbox.Confined{
		Spec: s, Backend: c.name(), Enforcement: enforcement, NotEnforced: open,
		Evidence: sandbox.Evidence{
			Denials: []string{"read-only file system", "permission denied"}, Ambiguous: true,
			Runner: path, Signatures: c.config.RunnerFailureSignatures,
		},
	}, nil
}

func (c *custom) describe() (sandbox.Enforcement, []string) {
	return sandbox.Full, []string{"what runnerCommand enforces is taken on its word"}
}

// probe implements backend. The runner is the deployment's own choice; there is none to fall back to.
func (c *custom) probe(ctx context.Context) error {
	_, err := c.runtime.ResolveExecutable(ctx, c.config.RunnerCommand[0])
	return err
}
