package procspec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/modules/subprocess"
)

// Validate returns why s cannot be carried out, or nil. What the Spec says comes first, then whether ctx has ended,
// then what the file system says of the directory. The program is looked for by Environment.Resolve.
func Validate(ctx context.Context, s subprocess.Spec) error {
	for _, check := range []func(subprocess.Spec) error{argv, dir, env, stdin, outputs, grace, limits} {
		if err := check(s); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return usable(s.Dir)
}

func invalid(field, reason string) error {
	return &subprocess.InvalidError{Field: field, Reason: reason}
}

const hasNUL = "has a NUL byte"

func nul(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func argv(s subprocess.Spec) error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return invalid("argv[0]", "is empty")
	}
	for i, arg := range s.Argv {
		if nul(arg) {
			return invalid(fmt.Sprintf("argv[%d]", i), hasNUL)
		}
	}
	return nil
}

func dir(s subprocess.Spec) error {
	switch {
	case nul(s.Dir):
		return invalid("dir", hasNUL)
	case !filepath.IsAbs(s.Dir):
		return invalid("dir", fmt.Sprintf("must be absolute, got %q", s.Dir))
	}
	return nil
}

func env(s subprocess.Spec) error {
	// Sorted, so that the same Spec is always refused for the same reason.
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		switch {
		case name == "":
			return invalid("env", "has an empty name")
		case nul(name) || strings.ContainsRune(name, '='):
			return invalid("env", fmt.Sprintf("has the name %q", name))
		case nul(s.Env.Set[name]):
			return invalid("env", name+" "+hasNUL)
		}
	}
	for _, name := range s.Env.Unset {
		if name == "" || nul(name) {
			return invalid("env", fmt.Sprintf("unsets the name %q", name))
		}
	}
	return nil
}

func stdin(s subprocess.Spec) error {
	n := 0
	for _, set := range []bool{s.Stdin.Pipe, s.Stdin.Bytes != nil, s.Stdin.Reader != nil} {
		if set {
			n++
		}
	}
	if n > 1 {
		return invalid("stdin", "has more than one source")
	}
	return nil
}

func outputs(s subprocess.Spec) error {
	if err := output("stdout", s.Stdout); err != nil {
		return err
	}
	return output("stderr", s.Stderr)
}

func output(field string, o subprocess.Output) error {
	n := 0
	for _, set := range []bool{o.Pipe, o.Inherit, o.Collect != nil} {
		if set {
			n++
		}
	}
	switch {
	case n == 0:
		return invalid(field, "is not stated")
	case n > 1:
		return invalid(field, "has more than one destination")
	case o.Collect != nil && o.Collect.MaxBytes < 0:
		return invalid(field, fmt.Sprintf("maxBytes must not be negative, got %d", o.Collect.MaxBytes))
	case o.Collect != nil && o.Collect.SpillMaxBytes < 0:
		return invalid(field, fmt.Sprintf("spillMaxBytes must not be negative, got %d", o.Collect.SpillMaxBytes))
	}
	return nil
}

func grace(s subprocess.Spec) error {
	if s.Grace <= 0 || s.Grace > subprocess.MaxGrace {
		return invalid("grace", fmt.Sprintf("must be positive and at most %v, got %v", subprocess.MaxGrace, s.Grace))
	}
	return nil
}

func limits(s subprocess.Spec) error {
	if l := s.Limits; l.MemoryMax < 0 || l.PidsMax < 0 || !(l.CPUMax >= 0) || math.IsInf(l.CPUMax, 1) {
		return invalid("limits", fmt.Sprintf("must not be negative, got %+v", l))
	}
	return nil
}

var errNotDirectory = errors.New("not a directory")

// usable says why dir cannot be a working directory. Without this, a failing chdir in the child would be reported as
// the program's fault.
func usable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return &subprocess.DirError{Dir: dir, Err: err}
	}
	if !info.IsDir() {
		return &subprocess.DirError{Dir: dir, Err: errNotDirectory}
	}
	if err := searchable(dir); err != nil {
		return &subprocess.DirError{Dir: dir, Err: err}
	}
	return nil
}
