package toolbash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// directory returns the directory that a call's command runs in, absolute, having looked that it is one. In a sandbox
// there may be other directories than here; the executor looks there itself.
func (b *bash) directory(e tools.Execution, a arguments, p *sandbox.Policy) (string, error) {
	dir := a.workdir
	if !filepath.IsAbs(dir) {
		base, err := b.base(e, a, p)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, dir)
	}
	if b.confines {
		return dir, nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return "", unusable(dir, err)
	}
	return dir, nil
}

// base returns where a relative workdir starts. In a session it is the policy's workspace, or else the session's directory
// as the kernel knows it. Outside of one it is where the executor runs what names no directory.
func (b *bash) base(e tools.Execution, a arguments, p *sandbox.Policy) (string, error) {
	if p != nil && e.Session != nil {
		return p.WorkspaceRoot, nil
	}
	if e.Session != nil && e.Session.CWD != "" {
		root, err := filepath.EvalSymlinks(e.Session.CWD)
		if err != nil {
			return "", unusable(e.Session.CWD, err)
		}
		return root, nil
	}
	request := shell.Request{Command: a.command}
	if b.confines {
		request.Policy = p
	}
	spec, err := b.shell.Resolve(request)
	if err != nil {
		return "", err
	}
	base, err := filepath.Abs(spec.Workdir) // the host's own, if the executor names none
	if err != nil {
		return "", unusable(spec.Workdir, err)
	}
	return base, nil
}

// unusable says what is wrong with a directory, on one line whatever it is called.
func unusable(dir string, err error) error {
	const longest = 4096 // PATH_MAX: no directory is called more
	if len(dir) > longest {
		dir = dir[:longest] + "..."
	}
	reason := "cannot be used: " + err.Error()
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.Is(err, syscall.ENOTDIR):
		reason = "is not a directory"
	case errors.As(err, &path):
		reason = "cannot be used: " + path.Err.Error()
	}
	return &tools.Error{Code: tools.CodeWorkdir, Message: fmt.Sprintf("working directory %q %s", dir, reason)}
}
