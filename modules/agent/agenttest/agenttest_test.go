package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/agentloop"
	"dsh/modules/llm"
	"dsh/modules/session"
	"dsh/modules/systemprompt"
	"dsh/modules/tools"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func correct(t testing.TB, p agenttest.Parts) agent.Agent {
	prompt, err := systemprompt.New(systemprompt.Params{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := agentloop.New(agentloop.Params{
		Config: agentloop.DefaultConfig(), Model: p.Model, Tools: p.Tools, Prompt: prompt.Prompt, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Agent
}

type agentFunc func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error)

func (f agentFunc) Turn(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
	return f(ctx, s, in)
}

// changed returns a correct agent but for what change makes of a turn.
func changed(change func(a agent.Agent) agentFunc) agenttest.Maker {
	return func(t testing.TB, p agenttest.Parts) agent.Agent { return change(correct(t, p)) }
}

// eager is a registry whose tools all allow an overlap.
type eager struct{ tools.Registry }

func (e eager) Definitions() []tools.Definition { return overlapping(e.Registry) }

func overlapping(r tools.Registry) []tools.Definition {
	all := r.Definitions()
	for i := range all {
		all[i].Parallel = func(json.RawMessage) bool { return true }
	}
	return all
}

// untold is a model that never tells of retries.
type untold struct{ llm.Model }

func (u untold) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	r.Retrying = func(llm.Retry) error { return nil }
	return u.Model.Generate(ctx, r)
}

// mute is a model of which nothing is kept when it is ended.
type mute struct{ llm.Model }

func (m mute) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	response, err := m.Model.Generate(ctx, r)
	if err != nil {
		response = llm.Response{}
	}
	return response, err
}

// broken are agents that each break one promise, and the test that notices.
var broken = map[string]struct {
	caught string
	make   agenttest.Maker
}{
	"overlaps all calls": {"calls_overlap_only_where_tools_allow_it", func(t testing.TB, p agenttest.Parts) agent.Agent {
		return correct(t, agenttest.Parts{Model: p.Model, Tools: eager{p.Tools}})
	}},
	"logs no retries": {"retries_are_logged", func(t testing.TB, p agenttest.Parts) agent.Agent {
		return correct(t, agenttest.Parts{Model: untold{p.Model}, Tools: p.Tools})
	}},
	"forgets what was said": {"cancelled_while_the_model_speaks", func(t testing.TB, p agenttest.Parts) agent.Agent {
		return correct(t, agenttest.Parts{Model: mute{p.Model}, Tools: p.Tools})
	}},
	"goes on without the log": {"nothing_goes_on_when_the_log_takes_no_events", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			o, err := a.Turn(ctx, s, in)
			if err != nil && ctx.Err() == nil && len(s.Events()) > 0 {
				return o, nil
			}
			return o, err
		}
	})},
	"begins after the end": {"a_turn_that_cannot_begin_is_an_error", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			return a.Turn(context.WithoutCancel(ctx), s, in)
		}
	})},
	"calls everybody the user": {"cancelled_by_somebody_else", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer context.AfterFunc(ctx, cancel)()
			defer cancel()
			return a.Turn(inner, s, in)
		}
	})},
	"waits for its turn": {"one_turn_at_a_time", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			o, err := a.Turn(ctx, s, in)
			if errors.Is(err, agent.ErrBusy) {
				err = nil
			}
			return o, err
		}
	})},
	"is not observed": {"each_event_is_observed_after_it_was_logged", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			in.Observe = nil
			return a.Turn(ctx, s, in)
		}
	})},
	"does not say what it said": {"a_plain_answer", changed(func(a agent.Agent) agentFunc {
		return func(ctx context.Context, s session.Session, in agent.Input) (agent.Outcome, error) {
			o, err := a.Turn(ctx, s, in)
			o.Text = ""
			return o, err
		}
	})},
}

const brokenVariable = "DSH_TEST_BROKEN_AGENT"

// TestBrokenAgent is the suite over one of the broken agents.
func TestBrokenAgent(t *testing.T) {
	if b, ok := broken[os.Getenv(brokenVariable)]; ok {
		agenttest.Run(t, b.make)
	}
}

func TestTheSuiteNoticesEachBrokenPromise(t *testing.T) {
	t.Parallel()
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBrokenAgent$/^"+b.caught+"$", "-test.timeout=60s")
			suite.Env = append(os.Environ(), brokenVariable+"="+name)
			out, err := suite.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenAgent/"+b.caught) {
				t.Errorf("the suite passed it: %v\n%s", err, out)
			}
		})
	}
}

func TestTheSuitePassesACorrectAgent(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, correct)
}
