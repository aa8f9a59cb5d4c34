package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
)

// turn is one turn. It is worked on by one goroutine, which alone writes to the log.
type turn struct {
	*loop
	s       session.Session
	in      agent.Input
	number  int
	step    int
	outcome agent.Outcome

	meter     meter
	overflows int // how often the model found the conversation too long
}

// logError is a log that takes no events: nothing can go on.
type logError struct{ error }

func (e *logError) Unwrap() error { return e.error }

func tooLong(ms int) error {
	return &agent.AbortError{Abort: session.Abort{
		Kind: "timeout", Reason: fmt.Sprintf("the turn took longer than %d ms (maxTurnMs of the row agent-loop)", ms),
	}}
}

func (t *turn) append(d session.Data) error { return t.appendTook(d, 0) }

func (t *turn) appendTook(d session.Data, took time.Duration) error {
	e, err := t.s.Append(d)
	if err != nil {
		return &logError{err}
	}
	if t.in.Observe != nil {
		t.in.Observe(agent.Update{Event: e, Took: took})
	}
	return nil
}

// run makes the turn. The error is that of the log.
func (t *turn) run(ctx context.Context) error {
	if err := t.append(&session.TurnStart{Turn: t.number}); err != nil {
		return err
	}
	t.outcome.Turn = t.number
	reason := session.Reason{Kind: session.EndCompleted}
	if err := t.steps(ctx); err != nil {
		var log *logError
		if errors.As(err, &log) {
			return log.error
		}
		reason = reasonOf(ctx, err)
	}
	t.outcome.Reason, t.outcome.Steps = reason, t.step
	if err := t.append(&session.TurnEnd{Turn: t.number, Reason: reason}); err != nil {
		return errors.Unwrap(err)
	}
	return nil
}

var errMaxTokens = errors.New("the response was cut off")

// reasonOf returns what ended a turn that failed with err.
func reasonOf(ctx context.Context, err error) session.Reason {
	var by *agent.AbortError
	var failure *llm.Error
	switch {
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &by):
		return session.Reason{Kind: session.EndAborted, Abort: &by.Abort}
	case ctx.Err() != nil:
		return session.Reason{Kind: session.EndAborted, Abort: &session.Abort{Kind: "user"}}
	case errors.Is(err, errMaxTokens):
		return session.Reason{Kind: session.EndMaxTokens}
	case errors.As(err, &failure):
		return session.Reason{Kind: session.EndError, Error: failure}
	}
	return session.Reason{Kind: session.EndError, Error: &llm.Error{Code: llm.CodeUnknown, Message: err.Error()}}
}

// steps makes steps until the model has nothing left to do. A nil error is a turn that completed.
func (t *turn) steps(ctx context.Context) error {
	messages := t.in.Messages
	for {
		if t.step == t.config.MaxSteps {
			return &llm.Error{Code: agent.CodeMaxSteps, Message: fmt.Sprintf(
				"the model was asked %d times and is not done (maxSteps of the row agent-loop)", t.step)}
		}
		done, err := t.makeStep(ctx, messages)
		if err != nil {
			return err
		}
		messages = t.notices()
		if done && (len(messages) == 0 || t.step == t.config.MaxSteps) {
			return nil
		}
	}
}

// notices returns what the model has to be told about its background jobs.
func (t *turn) notices() []llm.Message {
	if t.jobs == nil {
		return nil
	}
	var messages []llm.Message
	for _, n := range t.jobs.TakeNotices(t.s.Header().ID) {
		m := llm.UserText(n.Text())
		m.Source = llm.Source{Kind: llm.SourcePlugin, Plugin: "tool-jobs", Form: "notice"}
		messages = append(messages, m)
	}
	return messages
}

// makeStep makes one step. It is done when the model asks for no tool.
func (t *turn) makeStep(ctx context.Context, messages []llm.Message) (done bool, err error) {
	told, failed := t.assemble(ctx)
	if failed == nil {
		if err := t.relieve(ctx, told); err != nil {
			return false, err
		}
	}
	t.step++
	at := session.StepStart{Turn: t.number, Step: t.step}
	if err := t.append(&at); err != nil {
		return false, err
	}
	// Whatever has ended the turn, what it began with stays for the next one.
	if failed == nil {
		messages = append(messages[:len(messages):len(messages)], t.surroundings(told)...)
	}
	for _, m := range messages {
		if err := t.append(&session.UserMessage{Message: m}); err != nil {
			return false, err
		}
	}
	if failed == nil {
		done, failed = t.respond(ctx, told)
	}
	var log *logError
	if errors.As(failed, &log) {
		return false, failed
	}
	if err := t.append(&session.StepEnd{Turn: at.Turn, Step: at.Step}); err != nil {
		return false, err
	}
	return done, failed
}

// respond asks the model and makes the calls that it asks for.
func (t *turn) respond(ctx context.Context, told told) (done bool, err error) {
	response, err := t.ask(ctx, told)
	if err != nil {
		return false, err
	}
	m := response.Message()
	if err := t.append(&session.AssistantMessage{Turn: t.number, Step: t.step, Message: m, Usage: response.Usage}); err != nil {
		return false, err
	}
	t.account(response)
	if response.Finish == llm.FinishMaxTokens {
		return false, errMaxTokens
	}
	calls := m.ToolCalls()
	if len(calls) == 0 {
		return true, nil
	}
	if err := t.call(ctx, calls); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return false, nil
}

// ask makes one call of the model, and makes room once if the model finds the conversation too long.
func (t *turn) ask(ctx context.Context, told told) (llm.Response, error) {
	for {
		if ctx.Err() != nil {
			return llm.Response{}, context.Cause(ctx)
		}
		response, err := t.generate(ctx, told)
		var failure *llm.Error
		switch {
		case err == nil:
			return response, nil
		case ctx.Err() != nil:
			return llm.Response{}, errors.Join(err, t.keep(response))
		case !errors.As(err, &failure) || failure.Code != llm.CodeContextWindow || t.overflows > 0:
			return llm.Response{}, err
		}
		t.overflows++
		if cerr := t.compact(ctx, told, t.estimate(told)/2); cerr != nil {
			t.log.Warn("compaction failed", "error", cerr)
			return llm.Response{}, errors.Join(err, cerr)
		}
	}
}

func (t *turn) generate(ctx context.Context, told told) (llm.Response, error) {
	id := ""
	return t.model.Generate(ctx, llm.Request{
		Model: t.in.Model, System: told.System, Messages: t.s.Messages(), Tools: told.tools,
		Retrying: func(r llm.Retry) error {
			if id == "" {
				id = "retry-" + newID()
			}
			return t.append(&session.LLMRetry{
				RetryID: id, Turn: t.number, Step: t.step, Provider: told.target.Provider,
				Retry: r.Attempt, MaxRetries: r.MaxRetries, DelayMs: r.DelayMs, Failure: r.Failure,
			})
		},
	})
}

// keep logs the beginning of a response that was ended, if it says anything.
func (t *turn) keep(r llm.Response) error {
	said := false
	var content []llm.Block
	for _, b := range r.Content {
		if b.Type == llm.TextBlock || b.Type == llm.ReasoningBlock {
			content = append(content, b)
			said = said || strings.TrimSpace(b.Text) != ""
		}
	}
	if !said {
		return nil
	}
	r.Content = content
	t.account(r)
	return t.append(&session.AssistantMessage{
		Turn: t.number, Step: t.step, Message: r.Message(), Usage: r.Usage, Interrupted: true,
	})
}

func (t *turn) account(r llm.Response) {
	if text := r.Message().Text(); strings.TrimSpace(text) != "" {
		t.outcome.Text = text
	}
	if u, sum := r.Usage, &t.outcome.Usage; u != nil {
		sum.InputTokens += u.InputTokens
		sum.OutputTokens += u.OutputTokens
		sum.CacheReadTokens += u.CacheReadTokens
		sum.CacheWriteTokens += u.CacheWriteTokens
		sum.ReasoningTokens += u.ReasoningTokens
	}
}
