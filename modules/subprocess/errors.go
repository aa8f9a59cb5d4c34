package subprocess

import (
	"errors"
	"fmt"
)

// ErrStopped is what Spawn returns once the runtime's row has begun to stop.
var ErrStopped = errors.New("the subprocess runtime has stopped")

// InvalidError is a Spec that no runtime could carry out.
type InvalidError struct {
	Field  string // as in Spec: argv[0], path, dir, env, grace, stdout, ...
	Reason string
}

// Error returns the field and the reason.
func (e *InvalidError) Error() string { return "invalid " + e.Field + ": " + e.Reason }

// DirError is a working directory that cannot be used.
type DirError struct {
	Dir string
	Err error // why: not exist, not a directory, not permitted
}

// Error names the directory and says why it cannot be used.
func (e *DirError) Error() string { return fmt.Sprintf("working directory %s: %v", e.Dir, e.Err) }

// Unwrap returns the reason.
func (e *DirError) Unwrap() error { return e.Err }

// ExecutableError is a program that was not found or may not be run.
type ExecutableError struct {
	Name   string
	Reason string
}

// Error names the program and says what is wrong with it.
func (e *ExecutableError) Error() string { return fmt.Sprintf("executable %q %s", e.Name, e.Reason) }
