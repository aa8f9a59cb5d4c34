package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dsh/module/key"
)

// The capabilities of this package.
var (
	Key          = key.Of[Provider]("sandbox")
	PoliciesKey  = key.Of[Policies]("sandbox-policy")
	OverridesKey = key.Of[Overrides]("sandbox-overrides")
)

// Mode says what commands may do to files.
type Mode string

// The modes, from the narrowest to the widest.
const (
	ReadOnly         Mode = "read-only"
	WorkspaceWrite   Mode = "workspace-write"
	DangerFullAccess Mode = "danger-full-access"
)

// Modes returns every mode, from the narrowest to the widest.
func Modes() []Mode { return []Mode{ReadOnly, WorkspaceWrite, DangerFullAccess} }

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return slices.Contains(Modes(), m) }

// WiderThan reports whether m allows strictly more than other. What is no mode allows nothing and is wider than nothing.
func (m Mode) WiderThan(other Mode) bool {
	return m.Valid() && slices.Index(Modes(), m) > slices.Index(Modes(), other)
}

// Policy is what one call may do.
type Policy struct {
	Mode Mode
	// WorkspaceRoot is the directory that WorkspaceWrite opens: absolute, without symbolic links.
	WorkspaceRoot string
	// SessionID is the session that temporary files are kept for; empty outside of a session.
	SessionID string
}

// Validate returns what makes p unusable, whatever the machine.
func (p Policy) Validate() error {
	switch {
	case !p.Mode.Valid():
		return fmt.Errorf("unknown sandbox mode %q", string(p.Mode))
	case !filepath.IsAbs(p.WorkspaceRoot):
		return fmt.Errorf("workspace root must be absolute, got %q", p.WorkspaceRoot)
	case strings.ContainsRune(p.WorkspaceRoot, 0):
		return fmt.Errorf("workspace root %q contains a NUL byte", p.WorkspaceRoot)
	}
	return nil
}

// WorkspaceError is a workspace that cannot be one. Policies return it.
type WorkspaceError struct {
	Root string // as it was given
	Err  error  // an fs.PathError, or why it is no directory
}

// Error names the directory and says what is wrong with it.
func (e *WorkspaceError) Error() string { return "sandbox workspace: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *WorkspaceError) Unwrap() error { return e.Err }

// Prompt returns what a model is told about p.
func (p Policy) Prompt() string {
	switch p.Mode {
	case WorkspaceWrite:
		var root strings.Builder
		quote := json.NewEncoder(&root)
		quote.SetEscapeHTML(false)
		_ = quote.Encode(p.WorkspaceRoot) // text always can be
		return "Current DSH file policy: workspace-write. Any available operation enforced by the DSH file sandbox may modify " +
			"files under the session workspace: " + strings.TrimSpace(root.String()) + ". Some platform temporary areas may also be writable."
	case DangerFullAccess:
		return "Current DSH file policy: danger-full-access. The DSH file sandbox does not restrict file modifications by " +
			"available operations."
	}
	return "Current DSH file policy: read-only. Any available operation enforced by the DSH file sandbox cannot modify files in " +
		"the standing mode. Do not refuse a required modification from this policy alone: try an available tool normally and " +
		"follow any denial and escalation guidance it returns."
}

// Session is the session that a policy is asked for; the zero value is none.
type Session struct {
	ID  string
	CWD string // absolute: the session's workspace
}

// Policies is the one home of the mode and the workspace. Its methods may be called concurrently.
type Policies interface {
	// Default returns the deployment's mode.
	Default() Mode
	// Resolve returns the policy of one call. The mode is approved, if that is not empty, else the session's override,
	// else the default; the workspace is the session's, else the deployment's, as the kernel knows it. An approved mode
	// that is none, an override that cannot be read, or a workspace that is not there is an error, never a wider policy.
	Resolve(ctx context.Context, s Session, approved Mode) (Policy, error)
}

// Overrides tells which mode a session was switched to. Whoever keeps sessions provides it.
type Overrides interface {
	// SandboxMode returns the session's last choice; ok is false when it has made none.
	SandboxMode(ctx context.Context, sessionID string) (mode Mode, ok bool, err error)
}
