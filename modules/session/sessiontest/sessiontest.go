// Package sessiontest is the suite that every session.Store passes.
package sessiontest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/modules/llm"
	"dsh/modules/session"
)

// Run checks the stores of newPlace. It is called once for each check and returns what opens a store over the same,
// initially empty, place: each store stands for another host. What a check leaves open is ended by the clean-up of the
// test.
func Run(t *testing.T, newPlace func(testing.TB) (open func() session.Store)) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&suite{TB: t, open: newPlace(t), patience: 20 * time.Second})
		})
	}
}

type check struct {
	name string
	run  func(s *suite)
}

func checks() []check { return slices.Concat(logChecks, ownershipChecks, resumeChecks) }

// suite is one check's place with the means to say what is wrong with it.
type suite struct {
	testing.TB
	open     func() session.Store
	patience time.Duration // how long anything may take that takes no time on an idle machine
}

// begin creates a session in st with the given events.
func (s *suite) begin(st session.Store, events ...session.Data) session.Session {
	s.Helper()
	open, err := st.Create(s.Context(), session.New{CWD: s.TempDir()})
	if err != nil {
		s.Fatalf("Create: %v", err)
	}
	s.append(open, events...)
	return open
}

func (s *suite) append(to session.Session, events ...session.Data) {
	s.Helper()
	for _, d := range events {
		if _, err := to.Append(d); err != nil {
			s.Fatalf("Append %s: %v", d.Type(), err)
		}
	}
}

// resumes opens a session as another host, after the one that had it closed it.
func (s *suite) resumes(id string) session.Session {
	s.Helper()
	open, err := s.open().Open(s.Context(), id)
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	return open
}

func (s *suite) close(open session.Session) {
	s.Helper()
	if err := open.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
}

func (s *suite) reads(id string) session.Log {
	s.Helper()
	log, err := s.open().Read(s.Context(), id)
	if err != nil {
		s.Fatalf("Read: %v", err)
	}
	return log
}

func (s *suite) wantErr(what string, got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func (s *suite) wantInvalid(what string, got error) {
	s.Helper()
	if _, is := errors.AsType[*session.InvalidError](got); !is {
		s.Errorf("%s: got error %v, want an *InvalidError", what, got)
	}
}

func (s *suite) wantSame(what string, got, want any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// turn is a whole turn with a task and an answer.
func turn(n int, task, answer string) []session.Data {
	return []session.Data{
		&session.TurnStart{Turn: n}, &session.StepStart{Turn: n, Step: 1},
		&session.UserMessage{Message: llm.UserText(task)},
		&session.AssistantMessage{Turn: n, Step: 1, Message: says(answer), Usage: &llm.Usage{InputTokens: 7, OutputTokens: 3}},
		&session.StepEnd{Turn: n, Step: 1}, &session.TurnEnd{Turn: n, Reason: session.Reason{Kind: session.EndCompleted}},
	}
}

// calling is the beginning of the first turn, up to a response with the given tool calls.
func calling(ids ...string) []session.Data {
	var calls []llm.Block
	for _, id := range ids {
		calls = append(calls, llm.Block{Type: llm.ToolCallBlock, CallID: id, Name: "bash", Arguments: `{"command":"true"}`})
	}
	return []session.Data{
		&session.TurnStart{Turn: 1}, &session.StepStart{Turn: 1, Step: 1},
		&session.UserMessage{Message: llm.UserText("do it")},
		&session.AssistantMessage{Turn: 1, Step: 1, Message: llm.Response{Content: calls}.Message()},
	}
}

func called(id string) session.Data {
	return &session.ToolCall{Turn: 1, Step: 1, CallID: id, Name: "bash", Arguments: `{"command":"true"}`}
}

func answered(id string) session.Data {
	return &session.ToolResult{Turn: 1, Step: 1, Message: llm.ToolResult(id, "done", false)}
}

func says(text string) llm.Message {
	return llm.Response{
		Content: []llm.Block{{Type: llm.TextBlock, Text: text}}, Target: llm.Target{Provider: "p", Model: "m"},
	}.Message()
}

func texts(messages []llm.Message) []string {
	var all []string
	for _, m := range messages {
		for _, b := range m.Content {
			all = append(all, string(m.Role)+" "+b.Text)
		}
	}
	return all
}
