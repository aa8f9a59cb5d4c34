package approvalterminal

import (
	"context"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/approval"
	"dsh/modules/session"
)

// audited has the question and its answer in the log of the session that asks. What cannot be logged is not allowed.
func (s *terminal) audited(r approval.Request, ask func() approval.Outcome) approval.Outcome {
	if s.store == nil || r.SessionID == "" {
		return ask()
	}
	log, live := s.store.Live(r.SessionID)
	if !live {
		return ask()
	}
	id := "approval-" + session.NewID()[len("session-"):]
	if _, err := log.Append(&session.ApprovalAsked{ID: id, ToolName: r.Tool, CallID: r.CallID, Reason: r.Reason}); err != nil {
		s.log.Error("a question for approval cannot be logged", "error", err)
		return approval.Unavailable
	}
	outcome := ask().Closed()
	if _, err := log.Append(&session.ApprovalDecided{ID: id, Outcome: outcome}); err != nil {
		s.log.Error("a decision cannot be logged", "error", err)
		return approval.Unavailable
	}
	return outcome
}

const (
	promptAsk = "Approval policy: ask. Operations that require approval may ask through the configured answerers; without an " +
		"available answerer, the request fails closed."
	promptNever = "Approval prompts are disabled in this session: actions that require approval are rejected automatically — do not " +
		"request sandbox escalation (do not set `sandbox_permissions`)."
)

// telling returns the row's active part, which tells models whether anybody is asked.
func telling(to agent.Prompt, policy Policy) module.Runner {
	undo := func() {}
	return module.Runner{
		Start: func(context.Context) (err error) {
			text := promptAsk
			if policy == Never {
				text = promptNever
			}
			undo, err = agent.Add(to, nil, []agent.Section{agent.Plain("approval:policy", agent.OrderApproval, text)})
			return err
		},
		Stop: func(context.Context) error {
			undo()
			return nil
		},
	}
}
