package sessiontest

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"dsh/modules/llm"
	"dsh/modules/sandbox"
	"dsh/modules/session"
)

var logChecks = []check{
	{"a session without events is stored", func(s *suite) {
		open := s.begin(s.open())
		_, err := s.open().Read(s.Context(), open.Header().ID)
		s.wantErr("Read before the first event", err, session.ErrNotFound)
		if list, err := s.open().List(s.Context()); err != nil || len(list) > 0 {
			s.Errorf("List before the first event: %v, %v", list, err)
		}
		s.close(open)
		_, err = s.open().Open(s.Context(), open.Header().ID)
		s.wantErr("Open without an event", err, session.ErrNotFound)
	}},
	{"events are read back otherwise than they were appended", func(s *suite) {
		before := time.Now().Add(-time.Millisecond)
		open := s.begin(s.open())
		var all []session.Event
		for _, d := range append(turn(1, "a task", "an answer"), &session.SandboxMode{Mode: sandbox.ReadOnly}) {
			e, err := open.Append(d)
			if err != nil {
				s.Fatalf("Append %s: %v", d.Type(), err)
			}
			if e.Time.Before(before) || e.Time.After(time.Now()) || e.Time.Nanosecond()%1e6 != 0 {
				s.Errorf("the event's time is %v", e.Time)
			}
			all = append(all, e)
			// What has been appended is there for others at once.
			log := s.reads(open.Header().ID)
			s.wantSame("Read", log.Events, all)
			s.wantSame("the header", log.Header, open.Header())
			if log.Torn != 0 {
				s.Errorf("%d bytes are torn, want none", log.Torn)
			}
		}
		for i, e := range all {
			if e.Seq != int64(i) {
				s.Errorf("event %d has the seq %d", i, e.Seq)
			}
		}
		s.wantSame("Events", open.Events(), all)
	}},
	{"odd text breaks a line or is lost", func(s *suite) {
		open := s.begin(s.open())
		for _, text := range []string{
			"a\nb\r\n", "\x00", "\u2028\u2029", `\"`, "<&>", "\U0001F600", "\xff\xfe", "a\xc3", "", strings.Repeat("x", 1<<17),
		} {
			m := llm.UserText(text)
			s.append(open, &session.UserMessage{Message: m})
			want := string([]rune(text)) // U+FFFD for each byte that is not UTF-8
			last := s.reads(open.Header().ID).Events
			got := last[len(last)-1].Data.(*session.UserMessage).Message.Text()
			if got != want {
				s.Errorf("%.20q became %.20q", text, got)
			}
			if live := open.Messages(); live[len(live)-1].Text() != got {
				s.Errorf("the session has %.20q, the log %.20q", live[len(live)-1].Text(), got)
			}
		}
	}},
	{"an appended event changes with what it was made from", func(s *suite) {
		open := s.begin(s.open())
		m := llm.UserText("before")
		raw := json.RawMessage(`{"a":1}`)
		d := &session.UserMessage{Message: m}
		s.append(open, d)
		m.Content[0].Text = "after"
		d.Message.ID = "after"
		s.append(open, calling("c")...)
		result := answered("c").(*session.ToolResult)
		result.Meta = raw
		s.append(open, called("c"), result)
		raw[2] = 'b'
		if got := open.Messages()[0].Text(); got != "before" {
			s.Errorf("the message is %q, want %q", got, "before")
		}
		events := open.Events()
		if got := string(events[len(events)-1].Data.(*session.ToolResult).Meta); got != `{"a":1}` {
			s.Errorf("the meta is %s", got)
		}
	}},
	{"what was handed out changes with later events", func(s *suite) {
		open := s.begin(s.open(), turn(1, "one", "two")...)
		events, messages, surface := open.Events(), open.Messages(), open.Surface()
		before := texts(messages)
		start, end := surface[0].Seq, surface[1].Seq
		s.append(open, &session.CompactionStart{CompactionID: "k"}, &session.CompactionSummary{
			CompactionID: "k", Shadowed: session.Range{Start: start, End: end}, Message: llm.UserText("so far"),
		}, &session.CompactionEnd{CompactionID: "k"})
		if len(events) != 6 || len(surface) != 2 || surface[0].Message.Text() != "one" {
			s.Errorf("%d events, surface %v", len(events), surface)
		}
		s.wantSame("messages", texts(messages), before)
	}},
	{"an event that cannot follow is taken", func(s *suite) {
		open := s.begin(s.open(), calling("a", "b")...)
		s.append(open, called("a"))
		before := s.reads(open.Header().ID).Events
		for what, d := range map[string]session.Data{
			"a turn in a turn":            &session.TurnStart{Turn: 2},
			"a turn's end in a step":      &session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}},
			"a step's end without result": &session.StepEnd{Turn: 1, Step: 1},
			"a message before results":    &session.UserMessage{Message: llm.UserText("x")},
			"a second response":           &session.AssistantMessage{Turn: 1, Step: 1, Message: says("x")},
			"a call that is made twice":   called("a"),
			"a call of nobody":            called("z"),
			"a result without a call":     answered("b"),
			"a result for another turn":   &session.ToolResult{Turn: 2, Step: 1, Message: llm.ToolResult("a", "", false)},
			"meta that is no JSON":        &session.ToolResult{Turn: 1, Step: 1, Message: llm.ToolResult("a", "", false), Meta: json.RawMessage(`{`)},
			"an unknown mode":             &session.SandboxMode{Mode: "all"},
			"an answer without question":  &session.ApprovalDecided{ID: "x", Outcome: "rejected"},
			"an event of no known type":   &session.Unknown{Of: "a/b", Raw: json.RawMessage(`{}`)},
			"nothing":                     nil,
			"a nil of a type":             (*session.TurnStart)(nil),
		} {
			_, err := open.Append(d)
			s.wantInvalid(what, err)
		}
		s.wantSame("Read afterwards", s.reads(open.Header().ID).Events, before)
		s.append(open, answered("a")) // and the session goes on
	}},
	{"concurrent appends tear each other", func(s *suite) {
		open := s.begin(s.open())
		const writers, each = 6, 8
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					if _, err := open.Append(&session.UserMessage{Message: llm.UserText("x")}); err != nil {
						s.Errorf("Append: %v", err)
					}
					_, _ = open.Messages(), open.Position()
				}
			})
		}
		wg.Wait()
		events := s.reads(open.Header().ID).Events
		s.wantSame("Read", events, open.Events())
		for i, e := range events {
			if e.Seq != int64(i) {
				s.Fatalf("event %d has the seq %d", i, e.Seq)
			}
		}
		if len(events) != writers*each {
			s.Errorf("%d events, want %d", len(events), writers*each)
		}
	}},
	{"the model sees something else than what the log says", func(s *suite) {
		open := s.begin(s.open(), turn(1, "one", "two")...)
		s.append(open, &session.TurnStart{Turn: 2}, &session.StepStart{Turn: 2, Step: 1},
			&session.UserMessage{Message: llm.UserText("three")},
			&session.AssistantMessage{Turn: 2, Step: 1, Message: llm.Response{}.Message(), Usage: &llm.Usage{InputTokens: 1}},
			&session.StepEnd{Turn: 2, Step: 1})
		s.wantSame("messages", texts(open.Messages()), []string{"user one", "assistant two", "user three"})
		surface := open.Surface()
		s.append(open, &session.CompactionStart{CompactionID: "k", Turn: pointer(2)}, &session.CompactionSummary{
			CompactionID: "k", Shadowed: session.Range{Start: surface[0].Seq, End: surface[1].Seq}, Message: llm.UserText("so far"),
		}, &session.CompactionEnd{CompactionID: "k"})
		s.wantSame("messages after a compaction", texts(open.Messages()), []string{"user so far", "user three"})
	}},
	{"the position is lost", func(s *suite) {
		open := s.begin(s.open(), calling("a", "b")...)
		s.append(open, called("a"))
		call := func(id string, started bool) session.Call {
			return session.Call{CallID: id, Name: "bash", Arguments: `{"command":"true"}`, Started: started}
		}
		s.wantSame("Position in a call", open.Position(), session.Position{
			Turns: 1, Turn: 1, Step: 1, Steps: 1, Unanswered: []session.Call{call("a", true), call("b", false)},
		})
		s.append(open, answered("a"), called("b"), answered("b"), &session.StepEnd{Turn: 1, Step: 1})
		s.wantSame("Position between steps", open.Position(), session.Position{Turns: 1, Turn: 1, Steps: 1, Unanswered: []session.Call{}})
		s.append(open, &session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}})
		s.append(open, turn(2, "x", "y")...)
		if got := open.Position(); got.Turns != 2 || got.Turn != 0 {
			s.Errorf("Position between turns: %+v", got)
		}
	}},
}

func pointer[T any](v T) *T { return &v }
