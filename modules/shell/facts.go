package shell

import (
	"context"

	"dsh/module/key"
)

// FactsKey names the capability Facts.
var FactsKey = key.Of[Facts]("shell-env")

// Facts is the registry of managed variables: the DSH_* names that commands get, whose values are made anew for every
// call. Its methods may be called concurrently.
type Facts interface {
	// Register adds a contributor. It fails if the name is taken, a key is malformed, reserved, undescribed or owned by
	// another contributor; undo removes the contributor.
	Register(c Contributor) (undo func(), err error)
	// Collect returns the variables for one execution. A contributor that fails, or returns a key that it did not
	// declare, fails the whole.
	Collect(ctx context.Context, e Execution) (map[string]string, error)
	// Declared returns what contributors declared, by key.
	Declared() []Variable
}

// Execution is the call that variables are made for.
type Execution struct {
	SessionID string // empty outside of a session
}

// Contributor is an owner of managed variables.
type Contributor struct {
	Name      string
	Variables []Variable
	// Resolve returns values for some or all of Variables.
	Resolve func(ctx context.Context, e Execution) (map[string]string, error)
}

// Variable is a managed variable: a key DSH_* and what it says.
type Variable struct{ Key, Description string }
