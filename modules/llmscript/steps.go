package llmscript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"dsh/module"
	"dsh/modules/internal/yamldoc"
	"dsh/modules/llm"
)

// step is one response.
type step struct {
	where          string
	delay          time.Duration
	pause          time.Duration
	lastToolResult *regexp.Regexp // nil: whatever it is
	failure        *llm.Error     // nil: content
	content        []llm.Block    // its tool calls have no ids
}

// written is a step as the file has it.
type written struct {
	Text      *string
	Reasoning *string
	Tools     []struct {
		Name      string
		Arguments json.RawMessage
	}
	Error *struct {
		Code, Message string
		RetryAfterMs  int64
	}
	DelayMs, PauseMs int64
	Expect           *struct{ LastToolResult *string }
}

// load reads the file.
func (s *script) load() error {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return module.Field("file", "cannot be read: %v", err)
	}
	items, err := yamldoc.List(s.file, text)
	if err != nil {
		return err
	}
	var steps []step
	for _, item := range items {
		where := fmt.Sprintf("%s:%d", s.file, item.Line)
		st, err := parse(item.JSON)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		st.where = where
		steps = append(steps, st)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.next = steps, 0
	return nil
}

func parse(text json.RawMessage) (step, error) {
	var w written
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return step{}, fmt.Errorf("not a step: %w", err)
	}
	says := w.Text != nil || w.Reasoning != nil || len(w.Tools) > 0
	switch {
	case w.Error == nil && !says:
		return step{}, errors.New("a step has text, reasoning, tools or an error")
	case w.Error != nil && says:
		return step{}, errors.New("a step with an error says nothing else")
	case w.DelayMs < 0:
		return step{}, errors.New("delayMs must not be negative")
	case w.PauseMs < 0:
		return step{}, errors.New("pauseMs must not be negative")
	}
	s := step{delay: time.Duration(w.DelayMs) * time.Millisecond, pause: time.Duration(w.PauseMs) * time.Millisecond}
	if err := s.expect(w); err != nil {
		return step{}, err
	}
	if w.Error != nil {
		return s, s.fail(w)
	}
	return s, s.say(w)
}

func (s *step) expect(w written) (err error) {
	if w.Expect == nil {
		return nil
	}
	if w.Expect.LastToolResult == nil {
		return errors.New("expect has the one key lastToolResult")
	}
	s.lastToolResult, err = regexp.Compile(*w.Expect.LastToolResult)
	return err
}

func (s *step) fail(w written) error {
	if w.Error.Code == "" || w.Error.RetryAfterMs < 0 {
		return errors.New("an error has a code, and no negative retryAfterMs")
	}
	s.failure = &llm.Error{Code: w.Error.Code, Message: w.Error.Message, RetryAfterMs: w.Error.RetryAfterMs}
	if s.failure.Message == "" {
		s.failure.Message = "scripted failure " + w.Error.Code
	}
	return nil
}

func (s *step) say(w written) error {
	if w.Reasoning != nil {
		s.content = append(s.content, llm.Block{Type: llm.ReasoningBlock, Text: *w.Reasoning})
	}
	if w.Text != nil {
		s.content = append(s.content, llm.Block{Type: llm.TextBlock, Text: *w.Text})
	}
	for _, t := range w.Tools {
		if t.Name == "" {
			return errors.New("a tool call has a name")
		}
		arguments := string(t.Arguments)
		if text := new(string); json.Unmarshal(t.Arguments, text) == nil {
			arguments = *text // null gives the empty text
		}
		s.content = append(s.content, llm.Block{Type: llm.ToolCallBlock, Name: t.Name, Arguments: arguments})
	}
	return nil
}
