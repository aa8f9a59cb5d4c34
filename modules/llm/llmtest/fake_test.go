package llmtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dsh/modules/llm"
)

// fake keeps every promise but one.
type fake struct {
	broken defect

	mu    sync.Mutex
	steps []Step
	calls int
}

// defect is a promise that a fake breaks.
type defect string

const (
	repairsArguments defect = "makes arguments JSON"
	sameIDs          defect = "gives all calls one id"
	noIDs            defect = "gives calls no ids"
	saysStop         defect = "says stop after tool calls"
	losesReasoning   defect = "drops reasoning"
	streamsNothing   defect = "streams nothing"
	streamsTwice     defect = "streams the last piece twice"
	streamsOne       defect = "streams all into one block"
	retriesAll       defect = "tries again whatever failed"
	retriesNone      defect = "never tries again"
	retriesSecretly  defect = "tells nobody that it tries again"
	retriesAtOnce    defect = "does not wait before it tries again"
	ignoresAsked     defect = "ignores how long it is asked to wait"
	ignoresListener  defect = "tries again although the listener failed"
	ignoresCancel    defect = "makes calls that come cancelled"
	hangs            defect = "waits for a silent model"
	hangsInWait      defect = "does not end a wait"
	otherCode        defect = "calls an abort something else"
	losesCause       defect = "does not say why it was aborted"
	losesPartial     defect = "loses what had been said"
	keepsCalls       defect = "keeps the tool calls of an aborted response"
	goesOn           defect = "goes on when it is cancelled in the middle"
	playsOneStep     defect = "gives concurrent calls the same response"
	changesRequest   defect = "changes the request"
	ignoresModel     defect = "ignores the model's name"
	sendsEmpty       defect = "sends an empty conversation"
	plainErrors      defect = "returns errors of no type"
)

func (f *fake) Target(ctx context.Context, model string) (llm.Target, error) {
	if ctx.Err() != nil && f.broken != ignoresCancel {
		return llm.Target{}, context.Cause(ctx)
	}
	if model == "" || f.broken == ignoresModel {
		model = "default"
	}
	return llm.Target{Provider: "fake", Model: model}, nil
}

func (f *fake) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	if ctx.Err() != nil && f.broken != ignoresCancel {
		return llm.Response{}, f.aborted(ctx)
	}
	if len(r.Messages) == 0 && f.broken != sendsEmpty {
		return llm.Response{}, &llm.Error{Code: llm.CodeInvalidRequest, Message: "empty"}
	}
	target, _ := f.Target(context.WithoutCancel(ctx), r.Model)
	if f.broken == changesRequest {
		r.Messages[0].Content[0].Text += "!"
	}
	for retry := 1; ; retry++ {
		st := f.take()
		if st.Silent {
			<-ctx.Done()
			if f.broken == hangs {
				<-f.stuck()
			}
			return llm.Response{}, f.aborted(ctx)
		}
		if st.Failure == nil {
			return f.say(ctx, st, r, target)
		}
		again := llm.Passing(st.Failure.Code)
		if again = (again || f.broken == retriesAll) && f.broken != retriesNone && retry <= 5; !again {
			if f.broken == plainErrors {
				return llm.Response{}, errors.New(st.Failure.Message)
			}
			return llm.Response{}, st.Failure
		}
		wait := 500 * time.Millisecond
		if st.Failure.RetryAfterMs > 0 && f.broken != ignoresAsked {
			wait = time.Duration(st.Failure.RetryAfterMs) * time.Millisecond
		}
		if r.Retrying != nil && f.broken != retriesSecretly {
			err := r.Retrying(llm.Retry{Attempt: retry, MaxRetries: 5, DelayMs: wait.Milliseconds(), Failure: st.Failure})
			if err != nil && f.broken != ignoresListener {
				return llm.Response{}, err
			}
		}
		if f.broken == retriesAtOnce {
			continue
		}
		if f.broken == hangsInWait {
			<-f.stuck()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return llm.Response{}, f.aborted(ctx)
		}
	}
}

// stuck returns what takes longer than a call may, and not forever.
func (f *fake) stuck() <-chan time.Time { return time.After(testPatience + 500*time.Millisecond) }

func (f *fake) aborted(ctx context.Context) error {
	e := llm.Aborted(ctx)
	if f.broken == otherCode {
		e.Code = llm.CodeUnknown
	}
	if f.broken == losesCause {
		e.Err = nil
	}
	return e
}

func (f *fake) take() Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.steps) == 0 {
		return Step{Failure: &llm.Error{Code: llm.CodeUnknown, Message: "no more steps"}}
	}
	st := f.steps[0]
	if f.broken != playsOneStep || len(f.steps) == 1 {
		f.steps = f.steps[1:]
	}
	return st
}

func (f *fake) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	switch f.broken {
	case sameIDs:
		return "call"
	case noIDs:
		return ""
	}
	return fmt.Sprintf("call-%d", f.calls)
}

func (f *fake) say(ctx context.Context, st Step, r llm.Request, target llm.Target) (llm.Response, error) {
	said := llm.Response{Finish: llm.FinishStop, Target: target}
	for _, b := range st.Content {
		i := len(said.Content)
		if b.Type == llm.ReasoningBlock && f.broken == losesReasoning {
			continue
		}
		d := llm.Delta{Index: i, Type: b.Type, Text: b.Text}
		if b.Type == llm.ToolCallBlock {
			b.CallID = f.id()
			if f.broken == repairsArguments && b.Arguments == "" {
				b.Arguments = "{}"
			}
			d.CallID, d.Name, d.Text = b.CallID, b.Name, b.Arguments
			if f.broken != saysStop {
				said.Finish = llm.FinishToolCalls
			}
		}
		if f.broken == streamsOne {
			d.Index = 0
		}
		said.Content = append(said.Content, b)
		if r.Stream != nil && f.broken != streamsNothing {
			r.Stream(d)
			if f.broken == streamsTwice {
				r.Stream(d)
			}
		}
		if ctx.Err() == nil || f.broken == goesOn || f.broken == keepsCalls && b.Type != llm.ToolCallBlock {
			continue
		}
		switch f.broken {
		case losesPartial:
			return llm.Response{}, f.aborted(ctx)
		case keepsCalls:
			return said, f.aborted(ctx)
		}
		return said.Interrupted(), f.aborted(ctx)
	}
	return said, nil
}
