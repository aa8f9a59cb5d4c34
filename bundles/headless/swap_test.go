package headless_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/composetest"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/llm"
	"dsh/modules/session"
)

func stand(name string, constructor any) module.Module {
	return module.Define(module.Spec[struct{}]{Name: name, Summary: "stands in for another", Constructor: constructor})
}

// bare is a prompt of one sentence, whatever others have to say.
type bare struct{}

func (bare) Section(agent.Section) (func(), error) { return func() {}, nil }

func (bare) Context(agent.Section) (func(), error) { return func() {}, nil }

func (bare) Assemble(context.Context, agent.View) (agent.Assembly, error) {
	return agent.Assembly{System: "swapped prompt"}, nil
}

// full is a store that takes no session.
type full struct{ session.Store }

func (full) Create(context.Context, session.New) (session.Session, error) {
	return nil, errors.New("swapped store")
}

// parrot is a model that answers with what it was told to be.
type parrot struct{}

func (parrot) Target(context.Context, string) (llm.Target, error) {
	return llm.Target{Provider: "test", Model: "parrot"}, nil
}

func (parrot) Generate(_ context.Context, r llm.Request) (llm.Response, error) {
	return llm.Response{Content: []llm.Block{{Type: llm.TextBlock, Text: "parrot: " + r.System}}, Finish: llm.FinishStop}, nil
}

// lazy is an agent that asks nobody.
type lazy struct{}

func (lazy) Turn(context.Context, session.Session, agent.Input) (agent.Outcome, error) {
	return agent.Outcome{Text: "swapped agent", Reason: session.Reason{Kind: session.EndCompleted}}, nil
}

// mute is a runner that does nothing.
type mute struct{}

func (mute) Run(context.Context, agent.Task) (agent.Report, error) {
	return agent.Report{Outcome: agent.Outcome{Text: "swapped runner"}}, nil
}

func TestEachProviderCanBeSwapped(t *testing.T) {
	model := func() llm.Model { return parrot{} }
	swap := func(row, name string, constructor any) []composetest.Option {
		return []composetest.Option{composetest.Replace(row, stand(name, constructor))}
	}
	swapped := map[string]bool{}
	for _, c := range []struct {
		name, row string
		swap      []composetest.Option
		want      string
	}{
		{"the prompt", "system-prompt", swap("system-prompt", "bare", func() agent.Prompt { return bare{} }), "parrot: swapped prompt"},
		{"the model", "llm", swap("llm", "parrot", model), "parrot: You are an AI agent"},
		{
			"the other model", "llm-script",
			append([]composetest.Option{composetest.Patch("- {id: llm, disabled: true}\n")}, swap("llm-script", "parrot", model)...),
			"parrot: You are an AI agent",
		},
		{"the store", "session-persistence-jsonl", swap("session-persistence-jsonl", "full", func() session.Store { return full{} }), "swapped store"},
		{"the agent", "agent-loop", swap("agent-loop", "lazy", func() agent.Agent { return lazy{} }), "swapped agent"},
		{"the runner", "headless-runner", swap("headless-runner", "mute", func() agent.Runner { return mute{} }), "swapped runner"},
	} {
		swapped[c.row] = true
		t.Run(c.name, func(t *testing.T) {
			options := append([]composetest.Option{composetest.With(base.Bundle(), headless.Bundle())}, c.swap...)
			if c.row != "llm" && c.row != "llm-script" {
				options = append(options, swap("llm", "parrot", model)...)
			}
			r := composetest.Start(t, options...)
			report, err := composetest.Value[agent.Runner](t, r).Run(t.Context(), agent.Task{Text: "say it", CWD: t.TempDir()})
			got := report.Outcome.Text
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want it to begin with %q", got, c.want)
			}
		})
	}
	of := func(options ...module.Bundle) []string {
		return composetest.MustPlan(t, composetest.With(options...)).Rows().IDs()
	}
	for _, id := range of(base.Bundle(), headless.Bundle()) {
		if !swapped[id] && !slices.Contains(of(base.Bundle()), id) {
			t.Errorf("the row %s is not swapped here", id)
		}
	}
}
