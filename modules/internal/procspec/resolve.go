package procspec

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/modules/subprocess"
)

// Program returns what Resolve is to look for to run s.
func Program(s subprocess.Spec) string {
	if s.Path != "" {
		return s.Path
	}
	return s.Argv[0]
}

// Resolve is subprocess.Runtime's ResolveExecutable.
func (e *Environment) Resolve(ctx context.Context, name string) (string, error) {
	refuse := func(reason string) (string, error) {
		return "", &subprocess.ExecutableError{Name: name, Reason: reason}
	}
	switch {
	case name == "":
		return refuse("is empty")
	case nul(name):
		return refuse(hasNUL)
	case filepath.IsAbs(name):
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return refuse("does not exist")
		case err != nil || !executable(name, info):
			return refuse("is not an executable file")
		}
		return name, nil
	case strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator):
		return refuse("is a relative path; use an absolute path or a bare name")
	}
	for _, dir := range filepath.SplitList(e.path()) {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		// An empty entry is the working directory, which a command's author may control, as may a relative one.
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && executable(path, info) {
			return path, nil
		}
	}
	return refuse("was not found on PATH")
}
