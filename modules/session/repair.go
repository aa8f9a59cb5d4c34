package session

import (
	"fmt"
	"maps"
	"slices"

	"dsh/modules/approval"
	"dsh/modules/llm"
)

// Repair returns what has to be appended, in order, to close what a dead host left open.
func (s *State) Repair() []Data {
	var closing []Data
	if s.compaction != "" {
		closing = append(closing, &CompactionEnd{
			CompactionID: s.compaction,
			Error:        &llm.Error{Code: llm.CodeAborted, Message: "interrupted before it was finished"},
		})
	}
	for _, c := range s.calls {
		closing = append(closing, s.interrupted(c, s.next+int64(len(closing))))
	}
	for _, id := range slices.Sorted(maps.Keys(s.asked)) {
		closing = append(closing, &ApprovalDecided{ID: id, Outcome: approval.Cancelled})
	}
	if s.step != 0 {
		closing = append(closing, &StepEnd{Turn: s.turn, Step: s.step})
	}
	if s.turn != 0 {
		closing = append(closing, &TurnEnd{Turn: s.turn, Reason: Reason{Kind: EndInterrupted}})
	}
	return closing
}

// interrupted returns the result of a call whose own result nobody will ever see.
func (s *State) interrupted(c Call, seq int64) Data {
	text := "Error: the host was interrupted before this tool call was recorded as started. It was not executed. Make it " +
		"again if it is still needed."
	failure := &ToolError{Name: "ToolNotStartedError", Code: CodeToolNotStarted}
	if c.Started {
		text = "Error: the host was interrupted after this tool call was recorded as started, and its outcome is unknown. Do " +
			"not repeat it blindly: repeat it only if it is read-only or idempotent; otherwise look at what it may have " +
			"changed first, or ask the user."
		failure = &ToolError{Name: "ToolOutcomeUnknownError", Code: CodeToolOutcomeUnknown}
	}
	m := llm.ToolResult(c.CallID, text, true)
	m.ID = fmt.Sprintf("interrupted-tool-result-%s-%d", c.CallID, seq)
	return &ToolResult{Turn: s.turn, Step: s.step, Message: m, Error: failure}
}
