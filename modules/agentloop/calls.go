package agentloop

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/tools"
)

// call makes the calls of one response, neighbours that may overlap together.
func (t *turn) call(ctx context.Context, calls []llm.Block) error {
	parallel := map[string]func(json.RawMessage) bool{}
	for _, d := range t.tools.Definitions() {
		parallel[d.Name] = d.Parallel
	}
	overlaps := func(c llm.Block) bool {
		may := parallel[c.Name]
		return may != nil && contained(may, arguments(c))
	}
	for len(calls) > 0 {
		n := 1
		if overlaps(calls[0]) {
			for n < len(calls) && overlaps(calls[n]) {
				n++
			}
		}
		if err := t.together(ctx, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// contained is may, which is a tool's own code; one that panics does not allow an overlap.
func contained(may func(json.RawMessage) bool, arguments json.RawMessage) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return may(arguments)
}

// answer is the result of the call at an index.
type answer struct {
	index  int
	result tools.Result
	took   time.Duration
}

// together makes calls that may overlap, as many at once as the row allows, begun in order. Each is answered when those
// before it are. When ctx ends, those that have begun are waited for, and the others are answered without being made.
func (t *turn) together(ctx context.Context, calls []llm.Block) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // when the log fails, for the calls that nobody will hear of

	answers := make(chan answer, len(calls))
	waiting := make([]*answer, len(calls))
	begun, running := 0, 0
	begin := func() error {
		i, c := begun, calls[begun]
		if err := t.append(&session.ToolCall{
			Turn: t.number, Step: t.step, CallID: c.CallID, Name: c.Name, Arguments: c.Arguments,
		}); err != nil {
			return err
		}
		begun, running = begun+1, running+1
		all.Go(func() {
			started := time.Now()
			result := t.execute(ctx, c)
			answers <- answer{i, result, time.Since(started)}
		})
		return nil
	}
	for answered := 0; answered < len(calls); {
		for begun < len(calls) && running < t.config.MaxParallelToolCalls && (ctx.Err() == nil || running == 0) {
			if err := begin(); err != nil {
				return err
			}
			if ctx.Err() != nil { // one that is not to be made waits until those that were are answered
				break
			}
		}
		a := <-answers
		waiting[a.index], running = &a, running-1
		for answered < begun && waiting[answered] != nil {
			if err := t.answer(calls[answered], *waiting[answered]); err != nil {
				return err
			}
			answered++
		}
	}
	return nil
}

func (t *turn) execute(ctx context.Context, c llm.Block) tools.Result {
	h := t.s.Header()
	return t.tools.Execute(ctx, tools.Execution{
		CallID: c.CallID, Name: c.Name, Arguments: arguments(c), Session: &tools.SessionRef{ID: h.ID, CWD: h.CWD},
	})
}

// arguments returns what the model wrote as JSON: as a string what is none, so that the tool's schema says what is wrong.
func arguments(c llm.Block) json.RawMessage {
	switch {
	case c.Arguments == "":
		return json.RawMessage("{}")
	case json.Valid([]byte(c.Arguments)):
		return json.RawMessage(c.Arguments)
	}
	quoted, _ := json.Marshal(c.Arguments) // text always can be
	return quoted
}

// meta is what the log keeps of a call besides what the model sees.
type meta struct {
	DurationMs int64  `json:"durationMs"`
	SpillPath  string `json:"spillPath,omitempty"`
}

func (t *turn) answer(c llm.Block, a answer) error {
	about := meta{DurationMs: a.took.Milliseconds()}
	text := a.result.Content
	if t.config.MaxInlineBytes > 0 && len(text) > t.config.MaxInlineBytes && c.Name != "read" {
		text, about.SpillPath = t.spill(c.Name, text)
	}
	d := &session.ToolResult{Turn: t.number, Step: t.step, Message: llm.ToolResult(c.CallID, text, a.result.Error != nil)}
	if a.result.Error != nil {
		d.Error = &session.ToolError{Name: "ToolError", Code: a.result.Error.Code}
		if code := d.Error.Code; code == tools.CodeAborted || code == tools.CodeAbortedBefore {
			d.Error.Name = "AbortError"
		}
	}
	raw, err := json.Marshal(about)
	if err != nil {
		return err
	}
	d.Meta = raw
	return t.appendTook(d, a.took)
}
