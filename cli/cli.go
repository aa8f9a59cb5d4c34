// Package cli is the command line of a dsh build: it turns flags into layers, makes a plan of them, and runs commands
// through the rows of that plan. A program that composes its own build calls Main with its own list of bundles.
package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"dsh/module"
)

// Build says what a program is made of.
type Build struct {
	Bundles    []module.Bundle // whose modules rows may mount
	Profiles   []Profile       // the first is the default; empty: one called default, of all bundles
	Deployment []byte          // the deployment layer; nil: none

	// Prepare, if not nil, readies this process for owning others. It is called before a command that starts processes
	// and before any other goroutine of Main's runs.
	Prepare func() error
}

// Profile is a named list of bundles.
type Profile struct {
	Name    string
	Bundles []string
}

// complete returns the build with a profile, if it has none, and refuses one that names what the build does not have: rows
// would be gone without a word, maybe those that confine.
func (b Build) complete() (Build, error) {
	var known []string
	for _, bundle := range b.Bundles {
		known = append(known, bundle.Name)
	}
	if len(b.Profiles) == 0 {
		b.Profiles = []Profile{{Name: "default", Bundles: known}}
	}
	for _, p := range b.Profiles {
		for _, name := range p.Bundles {
			if !slices.Contains(known, name) {
				return b, fmt.Errorf("this build's profile %q has the bundle %q, which the build lacks; there are %s", p.Name, name, strings.Join(known, ", "))
			}
		}
	}
	return b, nil
}

// Main runs the command that the program's arguments name, and ends the program with its exit status.
func Main(b Build) {
	os.Exit(Run(b, os.Args[1:], os.Stdout, os.Stderr))
}

// Run is Main without the end: it returns the exit status. It changes the process's working directory and environment
// when flags ask for that, so it is for programs whose job it is.
func Run(b Build, args []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	b, err := b.complete()
	if err != nil {
		fmt.Fprintf(stderr, "dsh: %v\n", err)
		return exitUsage
	}
	a := &app{build: b, stdout: out, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if lost := out.lost(); lost != nil {
		return a.reportLost(cmd, err, lost)
	}
	return a.report(cmd, err)
}
