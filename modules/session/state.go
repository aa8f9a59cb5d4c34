package session

import (
	"fmt"
	"slices"

	"dsh/modules/llm"
	"dsh/modules/sandbox"
)

// State is what a log says so far. The zero value is the state of a log without events. It is not safe for concurrent
// use.
type State struct {
	next                     int64
	turns, turn, steps, step int
	responded                bool   // the open step has its assistant message
	calls                    []Call // of the open step, without a result
	asked                    map[string]bool
	compaction               string // the open one's id
	surface                  []Node // never written to below its length: slices of it are handed out
	mode                     sandbox.Mode
}

// Next returns the seq of the event to come.
func (s *State) Next() int64 { return s.next }

// Position returns how far the log has come.
func (s *State) Position() Position {
	return Position{s.turns, s.turn, s.step, s.steps, slices.Clone(s.calls)}
}

// Surface returns the conversation with the events that gave it.
func (s *State) Surface() []Node { return s.surface[:len(s.surface):len(s.surface)] }

// Messages returns the conversation.
func (s *State) Messages() []llm.Message {
	messages := make([]llm.Message, len(s.surface))
	for i, n := range s.surface {
		messages[i] = n.Message
	}
	return messages
}

// SandboxMode returns the last mode that the session was switched to; ok is false when there was none.
func (s *State) SandboxMode() (mode sandbox.Mode, ok bool) { return s.mode, s.mode != "" }

// Check returns an *InvalidError if an event that says d cannot be the next.
func (s *State) Check(d Data) error {
	if err := s.check(d); err != nil {
		return &InvalidError{fmt.Sprintf("%s: %v", d.Type(), err)}
	}
	return nil
}

// Apply takes e for what happened next, or leaves s as it is and returns an *InvalidError.
func (s *State) Apply(e Event) error {
	if e.Seq != s.next {
		return &InvalidError{fmt.Sprintf("session event seq %d is not contiguous; expected %d", e.Seq, s.next)}
	}
	if err := s.Check(e.Data); err != nil {
		return err
	}
	s.apply(e)
	s.next++
	return nil
}

func (s *State) apply(e Event) {
	switch d := e.Data.(type) {
	case *TurnStart:
		s.turns, s.turn, s.steps = d.Turn, d.Turn, 0
	case *TurnEnd:
		// What was not closed in its turn is over all the same: it must not keep the next one from asking.
		s.turn, s.steps, s.asked, s.compaction = 0, 0, nil, ""
	case *StepStart:
		s.step, s.steps, s.responded = d.Step, d.Step, false
	case *StepEnd:
		s.step = 0
	case *UserMessage:
		s.add(e.Seq, d.Message)
	case *AssistantMessage:
		s.responded = true
		if len(d.Message.Content) > 0 {
			s.add(e.Seq, d.Message)
		}
		for _, c := range d.Message.ToolCalls() {
			s.calls = append(s.calls, Call{CallID: c.CallID, Name: c.Name, Arguments: c.Arguments})
		}
	case *ToolCall:
		s.call(d.CallID).Started = true
	case *ToolResult:
		id := d.Message.Content[0].CallID
		s.calls = slices.DeleteFunc(s.calls, func(c Call) bool { return c.CallID == id })
		s.add(e.Seq, d.Message)
	case *SandboxMode:
		s.mode = d.Mode
	case *ApprovalAsked:
		if s.asked == nil {
			s.asked = map[string]bool{}
		}
		s.asked[d.ID] = true
	case *ApprovalDecided:
		delete(s.asked, d.ID)
	case *CompactionStart:
		s.compaction = d.CompactionID
	case *CompactionSummary:
		from, to := s.node(d.Shadowed.Start), s.node(d.Shadowed.End)
		s.surface = slices.Concat(s.surface[:from], []Node{{e.Seq, d.Message}}, s.surface[to+1:])
	case *CompactionEnd:
		s.compaction = ""
	}
}

func (s *State) add(seq int64, m llm.Message) { s.surface = append(s.surface, Node{seq, m}) }

func (s *State) call(id string) *Call {
	for i := range s.calls {
		if s.calls[i].CallID == id {
			return &s.calls[i]
		}
	}
	return nil
}

func (s *State) node(seq int64) int {
	return slices.IndexFunc(s.surface, func(n Node) bool { return n.Seq == seq })
}
