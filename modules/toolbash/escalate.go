package toolbash

import (
	"context"
	"fmt"

	"dsh/modules/approval"
	"dsh/modules/sandbox"
	"dsh/modules/tools"
)

// policy returns what a call's command may do: the standing policy, with the mode that was approved for this call alone.
// It is nil where no policies are mounted. Every way of not getting an approval fails the call before anything is run.
func (b *bash) policy(ctx context.Context, e tools.Execution, a arguments) (*sandbox.Policy, error) {
	if b.policies == nil {
		if a.permissions != "" {
			return nil, nothingToEscalate()
		}
		return nil, nil
	}
	var session sandbox.Session
	if e.Session != nil {
		session = sandbox.Session{ID: e.Session.ID, CWD: e.Session.CWD}
	}
	standing, err := b.policies.Resolve(ctx, session, "")
	if err != nil {
		return nil, err
	}
	if !b.confines && b.policies.Default().WiderThan(standing.Mode) {
		return nil, &tools.Error{Code: sandbox.CodeUnavailable, Message: fmt.Sprintf(
			"this session's sandbox mode is %q, but the mounted bash executor confines nothing; refusing to run the command", string(standing.Mode))}
	}
	if a.permissions == "" {
		return &standing, nil
	}
	if !b.confines {
		return nil, nothingToEscalate()
	}
	if err := b.approve(ctx, e, a, standing.Mode); err != nil {
		return nil, err
	}
	standing.Mode = a.permissions
	return &standing, nil
}

func nothingToEscalate() error {
	return invalid("sandbox_permissions is not available in this composition (no sandboxing executor to escalate)")
}

// approve returns why a call may not have the mode that it asks for, or nil.
func (b *bash) approve(ctx context.Context, e tools.Execution, a arguments, standing sandbox.Mode) error {
	to := a.permissions
	switch {
	case to == standing:
		return nil
	case !to.WiderThan(standing):
		return invalid("sandbox escalation to %q is not strictly wider than this call's current %q mode", string(to), string(standing))
	case b.approval == nil:
		return denied("sandbox escalation to %q requires approval, but no approval service is composed", to)
	case e.Session == nil:
		return denied("sandbox escalation to %q requires approval, but the call has no agent to route it through", to)
	}
	switch approval.Decide(ctx, b.approval, approval.Request{
		SessionID: e.Session.ID, Tool: name, CallID: e.CallID, Reason: sandbox.EscalationReason(to, a.why), Detail: a.command,
	}) {
	case approval.AllowedOnce:
		return nil
	case approval.Rejected:
		return denied("the user rejected escalating this command to %q", to)
	case approval.Cancelled:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return denied("approval for escalating to %q was cancelled", to)
	}
	return denied("sandbox escalation to %q requires approval, but no approval channel is available", to)
}

func denied(format string, to sandbox.Mode) error {
	return &tools.Error{Code: tools.CodeDenied, Message: fmt.Sprintf(format, string(to))}
}
