package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/diag"
)

// Exit statuses of dsh itself.
const (
	exitUsage    = 2   // bad usage or configuration
	exitFailed   = 1   // a row did not start, or a command of ours failed
	exitTimedOut = 124 // exec: our timeout ended the command
	exitOurs     = 125 // exec: dsh could not do its part
	exitSignal   = 128 // plus the number of the signal
)

// exitError ends the program with a status; what there was to say has been said.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// runError is an error of a command that was understood, as against one of usage.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// report says on stderr what ended cmd and returns the exit status.
func (a *app) report(cmd *cobra.Command, err error) int {
	var exit *exitError
	var run *runError
	var faults *compose.Faults
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &faults):
		fmt.Fprint(a.stderr, faults.Report())
		return exitUsage
	case errors.As(err, &run):
		fmt.Fprint(a.stderr, diag.ReportOf(run.err))
		return exitFailed
	}
	fmt.Fprintf(a.stderr, "dsh: %v\nTry '%s --help'.\n", err, cmd.CommandPath())
	if cmd.Name() == "exec" {
		return exitOurs
	}
	return exitUsage
}
