package toolslocal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"dsh/modules/approval"
	"dsh/modules/tools"
)

const (
	aborted       = "tool call aborted"
	abortedBefore = "tool call aborted before dispatch"
)

// call is one call with the registry as it was when the call came.
type call struct {
	log      *slog.Logger
	approval approval.Service
	tool     *tools.Definition // nil: unknown
	before   []*tools.BeforeHook
	after    []*tools.AfterHook
}

func (c *call) run(ctx context.Context, e tools.Execution) tools.Result {
	if ctx.Err() != nil {
		return failed(tools.CodeAbortedBefore, abortedBefore)
	}
	if len(e.Arguments) == 0 {
		e.Arguments = json.RawMessage("{}")
	}
	e.Arguments = bytes.Clone(e.Arguments) // the caller keeps its slice
	arguments, err := tools.Decode(e.Arguments)
	if err != nil {
		return failed(tools.CodeInvalidArgs,
			fmt.Sprintf("tool execution arguments must be losslessly JSON-serializable: %v", err))
	}
	if c.tool == nil {
		return failed(tools.CodeUnknownTool, fmt.Sprintf("unknown tool %q", shorten(e.Name)))
	}
	if vs := c.tool.Parameters.Violations(arguments); len(vs) > 0 {
		return failed(tools.CodeInvalidArgs, "invalid arguments: "+strings.Join(vs, "; "))
	}
	denial, err := c.admit(ctx, e)
	switch {
	case err != nil && (ctx.Err() == nil || !endedBy(ctx, err)):
		return failure(err)
	case denial != nil:
		return c.observe(ctx, e, failure(denial))
	case ctx.Err() != nil:
		return failed(tools.CodeAbortedBefore, abortedBefore)
	}
	return c.observe(ctx, e, c.execute(ctx, e))
}

// admit asks the hooks. A denial is an answer; an error is a hook that failed.
func (c *call) admit(ctx context.Context, e tools.Execution) (denial *tools.Error, err error) {
	for _, h := range c.before {
		var d tools.Decision
		err := c.contain("hook before", e, func() (err error) {
			d, err = (*h)(ctx, own(e))
			return err
		})
		if err != nil {
			return nil, err
		}
		switch d.Verdict {
		case tools.Allow:
			continue
		case tools.Ask:
			if denial, err := c.ask(ctx, e, d.Reason); denial != nil || err != nil {
				return denial, err
			}
		default: // a verdict from the future is no permission
			return denied(d.Reason, "tool %q was denied", e.Name), nil
		}
	}
	return nil, nil
}

// ask asks for approval of a call, and returns the denial unless it is given, or the context's error when the caller has
// gone. The other hooks are heard all the same.
func (c *call) ask(ctx context.Context, e tools.Execution, reason string) (denial *tools.Error, err error) {
	switch {
	case c.approval == nil:
		return denied(reason, "tool %q requires approval (not yet supported)", e.Name), nil
	case e.Session == nil:
		return denied("", "tool %q requires approval, but the call has no agent to route it through", e.Name), nil
	}
	switch approval.Decide(ctx, c.approval, approval.Request{
		SessionID: e.Session.ID, Tool: e.Name, CallID: e.CallID, Reason: reason, Detail: string(e.Arguments),
	}) {
	case approval.AllowedOnce:
		return nil, nil
	case approval.Rejected:
		return denied("", "the user rejected tool %q", e.Name), nil
	case approval.Cancelled:
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return denied("", "approval for tool %q was cancelled", e.Name), nil
	}
	return denied("", "tool %q requires approval, but no approval channel is available", e.Name), nil
}

func denied(reason, format string, args ...any) *tools.Error {
	if reason == "" {
		reason = fmt.Sprintf(format, args...)
	}
	return &tools.Error{Code: tools.CodeDenied, Message: reason}
}

// execute runs the tool and waits for it.
func (c *call) execute(ctx context.Context, e tools.Execution) tools.Result {
	var value any
	err := c.contain("tool", e, func() (err error) {
		value, err = c.tool.Execute(ctx, own(e))
		return err
	})
	if ctx.Err() != nil && (err == nil || endedBy(ctx, err)) {
		return failed(tools.CodeAborted, aborted)
	}
	if err != nil {
		return failure(err)
	}
	raw, fault := snapshot(value)
	if fault != "" {
		return c.invalid(fault)
	}
	return c.present(e, raw)
}

// present validates and renders a value.
func (c *call) present(e tools.Execution, raw json.RawMessage) tools.Result {
	value, err := tools.Decode(raw)
	if err != nil {
		return c.invalid("value is not lossless JSON")
	}
	if vs := c.tool.Output.Violations(value); len(vs) > 0 {
		return c.invalid(strings.Join(vs, "; "))
	}
	var content string
	err = c.contain("render", e, func() (err error) {
		content, err = c.tool.Render(bytes.Clone(raw))
		return err
	})
	switch {
	case err != nil:
		return c.invalid("output.render failed: " + message(err))
	case !valid(content):
		return c.invalid("output.render returned non-lossless JSON")
	}
	return tools.Result{Content: content, Value: raw}
}

func (c *call) invalid(fault string) tools.Result {
	return failed(tools.CodeInvalidOutput, fmt.Sprintf("tool %q returned invalid output: %s", c.tool.Name, fault))
}

// own returns e with arguments that its receiver may do with as it likes.
func own(e tools.Execution) tools.Execution {
	e.Arguments = bytes.Clone(e.Arguments)
	if e.Session != nil {
		session := *e.Session
		e.Session = &session
	}
	return e
}
