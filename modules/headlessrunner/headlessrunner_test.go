package headlessrunner_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/headlessrunner"
	"dsh/modules/jobs"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/sessionjsonl"
)

// agentFunc is an agent that does as it is told.
type agentFunc func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error)

func (f agentFunc) Turn(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
	return f(ctx, s, in)
}

func completed(context.Context, session.Session, agent.Input) (agent.Outcome, error) {
	return agent.Outcome{Reason: session.Reason{Kind: session.EndCompleted}, Text: "done"}, nil
}

// keyless is a model without a key.
type keyless struct{ llm.Model }

func (keyless) Target(context.Context, string) (llm.Target, error) {
	return llm.Target{}, &llm.Error{Code: llm.CodeMissingCredential, Message: "no key in DEEPSEEK_API_KEY or OPENAI_API_KEY"}
}

// busy has jobs of several kinds.
type busy struct {
	jobs.Registry
	ended string
	err   error
	alive bool // the context that the end was given had not ended
}

func (b *busy) List(session string) []jobs.Snapshot {
	return []jobs.Snapshot{
		{ID: "bash-1", Label: "make", Owner: session, Status: jobs.Completed},
		{ID: "bash-2", Label: "serve \x1b[2J", Owner: session, Status: jobs.Running},
		{ID: "bash-3", Label: "of nobody", Status: jobs.Running},
	}
}

func (b *busy) EndSession(ctx context.Context, session string) error {
	b.ended, b.alive = session, ctx.Err() == nil
	return b.err
}

func store(t testing.TB) session.Store {
	t.Helper()
	r, err := sessionjsonl.New(sessionjsonl.Params{Config: sessionjsonl.Config{Root: t.TempDir()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Store
}

func TestWithoutAKeyThereIsNoSession(t *testing.T) {
	t.Parallel()
	s := store(t)
	r := headlessrunner.New(headlessrunner.Params{Agent: agentFunc(completed), Model: keyless{}, Store: s}).Runner
	report, err := r.Run(t.Context(), agent.Task{Text: "go"})
	if agent.ExitStatus(report, err) != agent.ExitUsage || !strings.Contains(err.Error(), "DEEPSEEK_API_KEY") {
		t.Errorf("got %v", err)
	}
	if all, err := s.List(t.Context()); len(all) != 0 || err != nil || report.SessionID != "" {
		t.Errorf("sessions %v, %v, %q", all, err, report.SessionID)
	}
}

func TestJobsThatAreAliveAreEndedAndNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		cancel bool
		status int
	}{
		"in time":            {nil, false, agent.ExitCompleted},
		"after a cancel":     {nil, true, agent.ExitCompleted},
		"not proven to end":  {errors.New("bash-2 goes on"), false, agent.ExitLeftover},
		"nor after a cancel": {errors.New("bash-2 goes on"), true, agent.ExitLeftover},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := &busy{err: c.err}
			work := func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
				if c.cancel {
					cancel()
				}
				return completed(ctx, s, in)
			}
			var warnings []string
			r := headlessrunner.New(headlessrunner.Params{Agent: agentFunc(work), Model: agenttest.NewModel(), Store: store(t), Jobs: b}).Runner
			report, err := r.Run(ctx, agent.Task{Text: "go", CWD: t.TempDir(), Warn: func(s string) { warnings = append(warnings, s) }})
			if got := agent.ExitStatus(report, err); got != c.status {
				t.Errorf("status %d, want %d: %v", got, c.status, err)
			}
			if b.ended != report.SessionID || !b.alive {
				t.Errorf("ended %q, with time left: %v", b.ended, b.alive)
			}
			if len(report.Ended) != 1 || report.Ended[0].ID != "bash-2" || report.Outcome.Text != "done" {
				t.Errorf("got %+v", report)
			}
			want := `ended the background job bash-2 (serve \u001b[2J), which was still running when the task was over`
			if len(warnings) != 1 || warnings[0] != want {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

func TestTheSessionIsClosedWhateverTheTurnDoes(t *testing.T) {
	t.Parallel()
	broken := errors.New("no space left")
	work := func(_ context.Context, s session.Session, _ agent.Input) (agent.Outcome, error) {
		_, err := s.Append(&session.TurnStart{Turn: 1})
		return agent.Outcome{}, errors.Join(err, broken)
	}
	s := store(t)
	r := headlessrunner.New(headlessrunner.Params{Agent: agentFunc(work), Model: agenttest.NewModel(), Store: s}).Runner
	report, err := r.Run(t.Context(), agent.Task{Text: "go", CWD: t.TempDir()})
	if !errors.Is(err, broken) || agent.ExitStatus(report, err) != agent.ExitFailed {
		t.Errorf("got %v", err)
	}
	again, err := s.Open(t.Context(), report.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestProgressTellsWhatTakesTime(t *testing.T) {
	t.Parallel()
	work := func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
		tell := func(d session.Data, took time.Duration) {
			in.Observe(agent.Update{Event: session.Event{Data: d}, Took: took})
		}
		call := func(id, name, arguments, result string, e *session.ToolError) {
			tell(&session.ToolCall{CallID: id, Name: name, Arguments: arguments}, 0)
			tell(&session.ToolResult{Message: llm.ToolResult(id, result, e != nil), Error: e}, 1234*time.Millisecond)
		}
		call("a", "bash", `{"command":"make test"}`, "ok\n", nil)
		call("b", "bash", `{"command":"make\ntest"}`, "bad\n[exit code: 2]", nil)
		call("c", "job_list", ``, "[not a marker", nil)
		call("d", "bash", `{nonsense`, "Error: x", &session.ToolError{Code: "INVALID_ARGS"})
		tell(&session.LLMRetry{Retry: 1, MaxRetries: 5, DelayMs: 500, Failure: &llm.Error{Code: "SERVER", Message: "busy\nnow"}}, 0)
		return completed(ctx, s, in)
	}
	var got []string
	r := headlessrunner.New(headlessrunner.Params{Agent: agentFunc(work), Model: agenttest.NewModel(), Store: store(t)}).Runner
	if _, err := r.Run(t.Context(), agent.Task{Text: "go", CWD: t.TempDir(), Progress: func(s string) { got = append(got, s) }}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"  1.234s bash make test",
		`  1.234s bash make\ntest [exit code: 2]`,
		"  1.234s job_list",
		"  1.234s bash {nonsense [INVALID_ARGS]",
		`the model failed (SERVER: busy\nnow); retry 1 of 5 in 500ms`,
	}
	if len(got) != 6 || strings.Join(got[1:], "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q after the session", got, want)
	}
}
