package toolbash

import (
	"context"
	"errors"
	"io/fs"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/tools"
)

// execute carries out one call.
func (b *bash) execute(ctx context.Context, e tools.Execution) (any, error) {
	a, err := parse(e.Arguments)
	if err != nil {
		return nil, err
	}
	policy, err := b.policy(ctx, e, a)
	if err != nil {
		return nil, normalised(err)
	}
	dir, err := b.directory(e, a, policy)
	if err != nil {
		return nil, normalised(err)
	}
	var who shell.Execution
	if e.Session != nil {
		who.SessionID = e.Session.ID
	}
	facts, err := b.facts.Collect(ctx, who)
	if err != nil {
		return nil, err
	}
	request := shell.Request{Command: a.command, Workdir: dir, Facts: facts}
	if b.confines {
		request.Policy = policy
	}
	if a.background {
		if !b.offersBackground() {
			return nil, b.noBackground()
		}
		return b.start(ctx, who.SessionID, a.command, request)
	}
	request.Timeout, request.Stdin = a.timeout, e.Stdin
	if e.Progress != nil {
		request.Progress = func(s shell.Stream, p []byte) { e.Progress(string(s), p) }
	}
	spec, err := b.shell.Resolve(request)
	if err != nil {
		return nil, normalised(err)
	}
	result, err := b.shell.Run(ctx, spec)
	if err != nil {
		return nil, normalised(err)
	}
	if result.Aborted {
		return nil, &tools.Error{Code: tools.CodeAborted, Message: "tool call aborted"}
	}
	return foreground{Kind: foregroundKind, Result: result}, nil
}

// noBackground says why a call cannot be started in the background.
func (b *bash) noBackground() error {
	if !b.config.EnableRunInBackground {
		return invalid("run_in_background is disabled for this deployment (enableRunInBackground: false)")
	}
	return invalid("background jobs unavailable: load @deepseek-ai/dsh-jobs and @deepseek-ai/dsh-tool-jobs")
}

// normalised gives an error of the layers below its code.
func normalised(err error) error {
	var request *shell.InvalidError
	var dir *subprocess.DirError
	var unconfined *sandbox.UnavailableError
	var workspace *sandbox.WorkspaceError
	switch {
	case errors.As(err, &workspace):
		return unusable(workspace.Root, workspace.Err)
	case errors.As(err, &unconfined):
		return &tools.Error{Code: sandbox.CodeUnavailable, Message: unconfined.Error()}
	case errors.As(err, &request), errors.Is(err, shell.ErrCommandTooLong):
		return &tools.Error{Code: tools.CodeInvalidArgs, Message: err.Error()}
	case errors.As(err, &dir): // it may go, or be closed to us, after we have looked
		return unusable(dir.Dir, &fs.PathError{Op: "chdir", Path: dir.Dir, Err: dir.Err})
	}
	return err
}
