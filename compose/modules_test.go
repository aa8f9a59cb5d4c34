package compose_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dsh/module"
	"dsh/module/key"
)

// The capabilities of the modules that the tests mount.
type (
	Runtime  interface{ Runtime() }
	Executor interface{ Executor() }
	Policies interface{ Policies() }
)

type (
	noConfig struct{}

	shellConfig struct {
		Cwd          string `koanf:"cwd" doc:"where commands run"`
		TimeoutMs    int    `koanf:"timeoutMs" doc:"ends a command that names no timeout"`
		MaxTimeoutMs int    `koanf:"maxTimeoutMs" doc:"caps the timeout that a command may name"`
		GraceMs      int    `koanf:"graceMs" doc:"from TERM to KILL"`
		Limits       limits `koanf:"limits" doc:"of one command"`
	}

	limits struct {
		MemoryMax int64             `koanf:"memoryMax" doc:"bytes"`
		Cpus      float64           `koanf:"cpus" doc:"how many"`
		Env       map[string]string `koanf:"env" doc:"variables"`
	}

	policyConfig struct {
		Mode          string   `koanf:"mode" doc:"what commands may do"`
		WritableRoots []string `koanf:"writableRoots" doc:"where they may write"`
		Strict        bool     `koanf:"strict" doc:"refuse instead of asking"`
	}
)

// sickConfig says in which phase a row fails, and how: error, panic or hang.
type sickConfig struct {
	Phase string `koanf:"phase"`
	How   string `koanf:"how"`
}

// sick makes a row that fails as its configuration says.
func sick(c sickConfig) (module.Runner, error) {
	in := func(phase string) func(context.Context) error {
		return func(ctx context.Context) error {
			switch {
			case c.Phase != phase:
				return nil
			case c.How == "panic":
				panic("index out of range [3] with length 3")
			case c.How == "hang":
				<-ctx.Done()
				return ctx.Err()
			}
			return errors.New("the machine has no such device")
		}
	}
	return module.Runner{Start: in("start"), Stop: in("stop")}, in("construct")(context.Background())
}

func (c shellConfig) Validate() error {
	var errs []error
	if c.TimeoutMs <= 0 {
		errs = append(errs, module.Field("timeoutMs", "must be positive, got %d", c.TimeoutMs))
	}
	if c.TimeoutMs > c.MaxTimeoutMs {
		errs = append(errs, module.FieldWith("timeoutMs", "maxTimeoutMs", "must be at most maxTimeoutMs, which is %d, got %d", c.MaxTimeoutMs, c.TimeoutMs))
	}
	if c.GraceMs <= 0 {
		errs = append(errs, module.Field("graceMs", "must be positive, got %d", c.GraceMs))
	}
	return errors.Join(errs...)
}

func (c policyConfig) Validate() error {
	for i, root := range c.WritableRoots {
		if root == "" {
			return module.Field(fmt.Sprintf("writableRoots[%d]", i), "must not be empty")
		}
	}
	switch c.Mode {
	case "read-only", "workspace-write", "danger-full-access":
		return nil
	}
	return module.Field("mode", "must be read-only, workspace-write or danger-full-access, got %q", c.Mode)
}

func shellDefaults() shellConfig {
	return shellConfig{TimeoutMs: 120000, MaxTimeoutMs: 600000, GraceMs: 3000, Limits: limits{Cpus: 1.5}}
}

type (
	runtimeImpl  struct{}
	executorImpl struct{}
	policiesImpl struct{}
)

func (runtimeImpl) Runtime()   {}
func (executorImpl) Executor() {}
func (policiesImpl) Policies() {}

// modules returns a registry of small modules with the shape of the real ones.
func modules(t testing.TB) *module.Registry {
	t.Helper()
	reg, err := module.NewRegistry(module.Bundle{
		Name: "test",
		Modules: []module.Module{
			module.Define(module.Spec[noConfig]{
				Name: "subprocess-local", Aliases: []string{"@deepseek-ai/dsh-subprocess-local"},
				Constructor: func() Runtime { return runtimeImpl{} },
			}),
			module.Define(module.Spec[policyConfig]{
				Name: "sandbox-policy", Aliases: []string{"@deepseek-ai/dsh-sandbox-policy"},
				Default: func() policyConfig {
					return policyConfig{Mode: "read-only", WritableRoots: []string{"/tmp", "/var/tmp"}}
				},
				Constructor: func(policyConfig) Policies { return policiesImpl{} },
			}),
			module.Define(module.Spec[shellConfig]{
				Name: "bash-local", Aliases: []string{"@deepseek-ai/dsh-bash-local"}, Platforms: module.Unix, Default: shellDefaults,
				Constructor: func(shellConfig, Runtime) Executor { return executorImpl{} },
			}),
			module.Define(module.Spec[shellConfig]{
				Name: "bash-sandbox", Aliases: []string{"@deepseek-ai/dsh-bash-sandbox"}, Platforms: module.Unix, Default: shellDefaults,
				Constructor: func(shellConfig, Runtime, Policies) Executor { return executorImpl{} },
			}),
			module.Define(module.Spec[shellConfig]{
				Name: "stub", Default: shellDefaults,
				Constructor: func(shellConfig) error { return nil },
			}),
			module.Define(module.Spec[noConfig]{
				Name: "tool-bash", Aliases: []string{"@deepseek-ai/dsh-tool-bash"},
				Constructor: func(Executor) error { return nil },
			}),
			module.Define(module.Spec[sickConfig]{
				Name: "sick", StartWithin: 100 * time.Millisecond, StopWithin: 100 * time.Millisecond, Constructor: sick,
			}),
			module.Define(module.Spec[noConfig]{
				Name:        "shell-of-policies",
				Constructor: func(Policies, Runtime) Executor { return executorImpl{} },
			}),
			module.Define(module.Spec[noConfig]{
				Name:        "policies-of-shell",
				Constructor: func(Executor) Policies { return policiesImpl{} },
			}),
		},
		Capabilities: []key.Key{key.Of[Runtime]("subprocess"), key.Of[Executor]("shell"), key.Of[Policies]("policies")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}
