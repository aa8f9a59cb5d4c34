package sandboxpolicy

import (
	"errors"
	"strings"

	"dsh/module"
	"dsh/modules/sandbox"
)

// Config is the configuration of the row sandbox-policy.
type Config struct {
	Mode          sandbox.Mode `koanf:"mode" values:"read-only,workspace-write,danger-full-access" doc:"what commands may do to files unless their session or an approval says otherwise: read-only, workspace-write or danger-full-access"`
	WorkspaceRoot string       `koanf:"workspaceRoot" doc:"the directory that workspace-write opens, absolute, for calls outside of a session; empty: the host's working directory"`
}

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config { return Config{Mode: sandbox.ReadOnly} }

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	var errs []error
	if !c.Mode.Valid() {
		errs = append(errs, module.Field("mode", "must be read-only, workspace-write or danger-full-access, got %q", string(c.Mode)))
	}
	switch {
	case c.WorkspaceRoot != "" && !module.IsAbs(c.WorkspaceRoot):
		errs = append(errs, module.Field("workspaceRoot", "must be an absolute path, got %q", c.WorkspaceRoot))
	case strings.ContainsRune(c.WorkspaceRoot, 0):
		errs = append(errs, module.Field("workspaceRoot", "must not contain a NUL byte"))
	}
	return errors.Join(errs...)
}
