package session

import (
	"errors"
	"fmt"
	"slices"

	"dsh/modules/llm"
)

func (s *State) check(d Data) error {
	switch d := d.(type) {
	case *TurnStart:
		if s.turn != 0 {
			return fmt.Errorf("turn %d is open", s.turn)
		}
		return numbered("turn", d.Turn, s.turns+1)
	case *TurnEnd:
		return s.checkTurnEnd(d)
	case *StepStart:
		if s.step != 0 {
			return fmt.Errorf("step %d is open", s.step)
		}
		if err := s.inTurn(d.Turn); err != nil {
			return err
		}
		return numbered("step", d.Step, s.steps+1)
	case *StepEnd:
		if len(s.calls) > 0 {
			return fmt.Errorf("tool call %q has no result", s.calls[0].CallID)
		}
		return s.inStep(d.Turn, d.Step)
	case *UserMessage:
		if len(s.calls) > 0 {
			return fmt.Errorf("tool call %q has no result", s.calls[0].CallID)
		}
		return checkUser(d.Message)
	case *AssistantMessage:
		return s.checkAssistant(d)
	case *ToolCall:
		return s.checkCall(d)
	case *ToolResult:
		return s.checkResult(d)
	case *LLMRetry:
		if d.RetryID == "" || d.Retry < 1 || d.Failure == nil {
			return errors.New("it needs a retryId, a retry from 1 and a failure")
		}
		return s.inStep(d.Turn, d.Step)
	case *SandboxMode:
		if !d.Mode.Valid() {
			return fmt.Errorf("unknown sandbox mode %q", string(d.Mode))
		}
		return nil
	case *ApprovalAsked:
		switch {
		case s.turn == 0:
			return errors.New("no turn is open")
		case d.ID == "" || s.asked[d.ID]:
			return fmt.Errorf("it needs an id of its own, got %q", d.ID)
		}
		return nil
	case *ApprovalDecided:
		switch {
		case !s.asked[d.ID]:
			return fmt.Errorf("approval %q was not asked for", d.ID)
		case d.Outcome != d.Outcome.Closed():
			return fmt.Errorf("unknown outcome %q", string(d.Outcome))
		}
		return nil
	case *CompactionStart:
		return s.checkCompactionStart(d)
	case *CompactionSummary:
		return s.checkSummary(d)
	case *CompactionEnd:
		return s.inCompaction(d.CompactionID)
	}
	return fmt.Errorf("event type %q is unknown to this dsh; the log was likely written by a newer one", d.Type())
}

func (s *State) checkTurnEnd(d *TurnEnd) error {
	if s.step != 0 {
		return fmt.Errorf("step %d is open", s.step)
	}
	switch d.Reason.Kind {
	case EndCompleted, EndBlocked, EndMaxTokens, EndInterrupted:
	case EndAborted:
		if d.Reason.Abort == nil || d.Reason.Abort.Kind == "" {
			return errors.New("the reason does not say who aborted")
		}
	case EndError:
		if d.Reason.Error == nil {
			return errors.New("the reason does not say which error")
		}
	default:
		return fmt.Errorf("unknown reason %q", string(d.Reason.Kind))
	}
	return s.inTurn(d.Turn)
}

func (s *State) checkAssistant(d *AssistantMessage) error {
	if err := s.inStep(d.Turn, d.Step); err != nil {
		return err
	}
	if s.responded {
		return fmt.Errorf("step %d has its response", s.step)
	}
	if err := checkMessage(d.Message, llm.RoleAssistant, llm.TextBlock, llm.ReasoningBlock, llm.ToolCallBlock); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range d.Message.ToolCalls() {
		switch {
		case c.CallID == "" || c.Name == "":
			return errors.New("a tool call without a callId or a name")
		case seen[c.CallID]:
			return fmt.Errorf("two tool calls %q", c.CallID)
		case d.Interrupted:
			return errors.New("an interrupted response with tool calls")
		}
		seen[c.CallID] = true
	}
	return nil
}

func (s *State) checkCall(d *ToolCall) error {
	if err := s.inStep(d.Turn, d.Step); err != nil {
		return err
	}
	c := s.call(d.CallID)
	switch {
	case c == nil:
		return fmt.Errorf("the step's response has no unanswered tool call %q", d.CallID)
	case c.Started:
		return fmt.Errorf("tool call %q has been made already", d.CallID)
	case c.Name != d.Name || c.Arguments != d.Arguments:
		return fmt.Errorf("tool call %q is not what the model asked for", d.CallID)
	}
	return nil
}

func (s *State) checkResult(d *ToolResult) error {
	if err := s.inStep(d.Turn, d.Step); err != nil {
		return err
	}
	if err := checkMessage(d.Message, llm.RoleTool, llm.ToolResultBlock); err != nil {
		return err
	}
	if len(d.Message.Content) != 1 {
		return fmt.Errorf("a result is one block, got %d", len(d.Message.Content))
	}
	id := d.Message.Content[0].CallID
	c := s.call(id)
	switch {
	case c == nil:
		return fmt.Errorf("the step's response has no unanswered tool call %q", id)
	case !c.Started && (d.Error == nil || d.Error.Code != CodeToolNotStarted):
		return fmt.Errorf("there is no tool/call for %q", id)
	}
	return nil
}

func (s *State) checkCompactionStart(d *CompactionStart) error {
	turn := 0
	if d.Turn != nil {
		turn = *d.Turn
	}
	switch {
	case d.CompactionID == "":
		return errors.New("it needs an id")
	case s.compaction != "":
		return fmt.Errorf("compaction %q is open", s.compaction)
	case turn != s.turn:
		return fmt.Errorf("it names turn %d, and turn %d is open", turn, s.turn)
	}
	return nil
}

func (s *State) checkSummary(d *CompactionSummary) error {
	if err := s.inCompaction(d.CompactionID); err != nil {
		return err
	}
	if err := checkUser(d.Message); err != nil {
		return err
	}
	from, to := s.node(d.Shadowed.Start), s.node(d.Shadowed.End)
	switch {
	case from < 0:
		return fmt.Errorf("start seq %d not found in surface", d.Shadowed.Start)
	case to < 0:
		return fmt.Errorf("end seq %d not found in surface", d.Shadowed.End)
	case from > to:
		return fmt.Errorf("start seq %d is after end seq %d", d.Shadowed.Start, d.Shadowed.End)
	case !s.balanced(from), !s.balanced(to + 1):
		return fmt.Errorf("the range from %d to %d parts a tool call from its result", d.Shadowed.Start, d.Shadowed.End)
	}
	return nil
}

// balanced reports whether no tool call before position i of the surface has its result, or will have it, from there on.
func (s *State) balanced(i int) bool {
	if i == len(s.surface) {
		return len(s.calls) == 0
	}
	return s.surface[i].Message.Role != llm.RoleTool
}

func checkUser(m llm.Message) error {
	if err := checkMessage(m, llm.RoleUser, llm.TextBlock); err != nil {
		return err
	}
	if len(m.Content) == 0 {
		return errors.New("a message without content")
	}
	return nil
}

func checkMessage(m llm.Message, role llm.Role, blocks ...llm.BlockType) error {
	switch {
	case m.ID == "":
		return errors.New("a message without an id")
	case m.Role != role:
		return fmt.Errorf("a message in the role %q, want %q", m.Role, role)
	}
	for _, b := range m.Content {
		if !slices.Contains(blocks, b.Type) {
			return fmt.Errorf("a block %q in a message in the role %q", b.Type, role)
		}
	}
	return nil
}

func numbered(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s %d, want %d", what, got, want)
	}
	return nil
}

func (s *State) inTurn(turn int) error {
	if s.turn == 0 {
		return errors.New("no turn is open")
	}
	return numbered("turn", turn, s.turn)
}

func (s *State) inStep(turn, step int) error {
	if err := s.inTurn(turn); err != nil {
		return err
	}
	if s.step == 0 {
		return errors.New("no step is open")
	}
	return numbered("step", step, s.step)
}

func (s *State) inCompaction(id string) error {
	if s.compaction == "" || s.compaction != id {
		return fmt.Errorf("compaction %q is not open", id)
	}
	return nil
}
