package sessiontest

import (
	"errors"

	"dsh/modules/approval"
	"dsh/modules/llm"
	"dsh/modules/sandbox"
	"dsh/modules/session"
)

var errGone = errors.New("nobody waits any more")

var resumeChecks = []check{
	{"a resumed session has forgotten something", func(s *suite) {
		open := s.begin(s.open(), turn(1, "one", "two")...)
		s.append(open, &session.SandboxMode{Mode: sandbox.ReadOnly}, &session.SandboxMode{Mode: sandbox.WorkspaceWrite})
		s.close(open)
		again := s.resumes(open.Header().ID)
		s.wantSame("the header", again.Header(), open.Header())
		s.wantSame("Events", again.Events(), open.Events())
		s.wantSame("Surface", again.Surface(), open.Surface())
		s.wantSame("Position", again.Position(), open.Position())
		s.wantSame("Recovery", again.Recovery(), session.Recovery{})
		if mode, ok := again.SandboxMode(); !ok || mode != sandbox.WorkspaceWrite {
			s.Errorf("the mode is %q, %v", mode, ok)
		}
		e, err := again.Append(&session.TurnStart{Turn: 2})
		if err != nil || e.Seq != 8 {
			s.Errorf("Append: seq %d, %v, want 8", e.Seq, err)
		}
		s.wantSame("Read", s.reads(open.Header().ID).Events, again.Events())
	}},
	{"a turn that a dead host left open stays open", func(s *suite) {
		open := s.begin(s.open(), calling("a", "b", "c")...)
		s.append(open, called("a"), answered("a"), called("b"), &session.ApprovalAsked{ID: "q", ToolName: "bash", CallID: "b"})
		s.close(open)
		before := open.Events()
		last := before[len(before)-1]

		again := s.resumes(open.Header().ID)
		added := again.Events()[len(before):]
		var types []session.Type
		for i, e := range added {
			types = append(types, e.Data.Type())
			if !e.Time.Equal(last.Time) || e.Seq != last.Seq+1+int64(i) {
				s.Errorf("%s has time %v and seq %d, want the last event's %v and the next", e.Data.Type(), e.Time, e.Seq, last.Time)
			}
		}
		s.wantSame("what was added", types, []session.Type{
			session.TypeToolResult, session.TypeToolResult, session.TypeApprovalDecided, session.TypeStepEnd, session.TypeTurnEnd,
		})
		for i, want := range []struct{ id, code string }{
			{"b", session.CodeToolOutcomeUnknown}, {"c", session.CodeToolNotStarted},
		} {
			r := added[i].Data.(*session.ToolResult)
			block := r.Message.Content[0]
			if block.CallID != want.id || r.Error == nil || r.Error.Code != want.code || !block.IsError || block.Text == "" {
				s.Errorf("result %d is %+v with error %+v, want %v", i, r.Message, r.Error, want)
			}
		}
		if d := added[2].Data.(*session.ApprovalDecided); d.Outcome != approval.Cancelled {
			s.Errorf("the approval is %+v", d)
		}
		if end := added[4].Data.(*session.TurnEnd); end.Reason.Kind != session.EndInterrupted {
			s.Errorf("the turn ended with %+v", end.Reason)
		}
		s.wantSame("Recovery", again.Recovery(), session.Recovery{Closed: 5})
		s.wantSame("Read", s.reads(open.Header().ID).Events, again.Events())
		s.append(again, turn(2, "go on", "yes")...)
		s.close(again)
		s.wantSame("the next Recovery", s.resumes(open.Header().ID).Recovery(), session.Recovery{})
	}},
	{"a compaction that a dead host left open stays open", func(s *suite) {
		open := s.begin(s.open(), turn(1, "one", "two")...)
		s.append(open, &session.CompactionStart{CompactionID: "k"})
		s.close(open)
		again := s.resumes(open.Header().ID)
		s.append(again, &session.CompactionStart{CompactionID: "l"})
		s.wantSame("messages", texts(again.Messages()), []string{"user one", "assistant two"})
	}},
	{"an interrupted response is lost", func(s *suite) {
		open := s.begin(s.open(), &session.TurnStart{Turn: 1}, &session.StepStart{Turn: 1, Step: 1},
			&session.UserMessage{Message: llm.UserText("one")},
			&session.AssistantMessage{Turn: 1, Step: 1, Message: says("tw"), Interrupted: true},
			&session.StepEnd{Turn: 1, Step: 1},
			&session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndAborted, Abort: &session.Abort{Kind: "user"}}})
		s.close(open)
		again := s.resumes(open.Header().ID)
		s.wantSame("messages", texts(again.Messages()), []string{"user one", "assistant tw"})
		end := again.Events()[5].Data.(*session.TurnEnd)
		if end.Reason.Abort == nil || end.Reason.Abort.Kind != "user" {
			s.Errorf("the turn ended with %+v", end.Reason)
		}
	}},
}
