package sandbox

import (
	"context"

	"dsh/modules/subprocess"
)

// Provider confines processes. Its methods may be called concurrently.
type Provider interface {
	// Confine returns what to spawn in place of r.Spec, so that it can do no more than r.Policy allows. Its context bounds
	// the preparation, and the error is its cause when it ends first. The Spec is not changed; its ExtraFiles stay the
	// caller's when there is an error, and keep their numbers otherwise.
	//
	// What cannot be confined is an *UnavailableError: also a policy with the mode DangerFullAccess, which is for the
	// caller to honour, and a workspace that no backend can open safely. A working directory that is not there inside of
	// the sandbox is a *subprocess.DirError.
	Confine(ctx context.Context, r Request) (*Confined, error)

	// Backends returns every backend that could be used on this machine in the order of preference, having tried each.
	Backends(ctx context.Context) []Backend
}

// Request is a process to confine.
type Request struct {
	Spec   subprocess.Spec // complete, its program and directory absolute
	Policy Policy
	// Proven asks for a backend that has been seen to work here. A caller that waits for the process's end needs none: a
	// runner that fails executes nothing, and Evidence.Failed tells whether to confine again.
	Proven bool
}

// Enforcement says whether a backend keeps everything that the modes promise about files.
type Enforcement string

// The degrees of enforcement.
const (
	Full    Enforcement = "full"
	Partial Enforcement = "partial"
)

// Backend is a way to confine, and whether it works here.
type Backend struct {
	Name        string      `json:"name"`
	Usable      bool        `json:"usable"`
	Reason      string      `json:"reason,omitempty"` // why it is not usable
	Chosen      bool        `json:"chosen"`           // the next command gets it
	Enforcement Enforcement `json:"enforcement,omitempty"`
	NotEnforced []string    `json:"notEnforced,omitempty"`
}

// Confined is a process that is ready to be spawned, once.
type Confined struct {
	Spec        subprocess.Spec
	Backend     string
	Enforcement Enforcement
	// NotEnforced lists what stays within a command's reach although one might not expect it.
	NotEnforced []string
	// Evidence tells how the process's end is to be read. The caller either watches it or releases it.
	Evidence Evidence
}

// Facts is what a result says about the sandbox that its command ran in.
type Facts struct {
	Mode   Mode `json:"mode"`
	Denied bool `json:"denied"` // the command failed, and the sandbox refused it something
	// DeniedBy is "text" when Denied was read from messages that ordinary refusals print too.
	DeniedBy    string      `json:"deniedBy,omitempty"`
	Enforcement Enforcement `json:"enforcement,omitempty"` // empty: nothing was enforced
	Backend     string      `json:"backend,omitempty"`
	// RunnerFailed says that a command in the background was not run, because its runner failed.
	RunnerFailed bool `json:"runnerFailed,omitempty"`
}

// CodeUnavailable is the code of an *UnavailableError wherever errors have codes.
const CodeUnavailable = "SANDBOX_UNAVAILABLE"

// UnavailableError is a command that was not run, because it could not be confined.
type UnavailableError struct {
	Mode   Mode
	Reason string // the runner's own words, or ours
}

// Error says that the command was refused and what would help; it is a text that models know.
func (e *UnavailableError) Error() string {
	text := `sandbox mode "` + string(e.Mode) + `" is requested but no sandbox backend is usable on this host; refusing to run the ` +
		"command unconfined. Install bubblewrap or run a Landlock-enforcing kernel (Linux), ensure sandbox-exec is usable " +
		"(macOS), or ensure the ACL restricted-token runner can start (Windows) — otherwise switch the consumer to " +
		"danger-full-access."
	if e.Reason != "" {
		text += " Runner failure: " + e.Reason
	}
	return text
}

// Code returns CodeUnavailable.
func (e *UnavailableError) Code() string { return CodeUnavailable }
