package systemprompt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/agent"
)

// Params is what New takes.
type Params struct {
	fx.In
	Config Config
}

// Result is what New gives.
type Result struct {
	fx.Out
	Prompt agent.Prompt
}

// Module returns the module system-prompt.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "system-prompt",
		Aliases:     []string{"@deepseek-ai/dsh-system-prompt"},
		Summary:     "puts together what a model is told besides the conversation",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

const identity = "You are an AI agent powered by DeepSeek Harness."

// New returns a prompt with the sections of p.Config.
func New(p Params) (Result, error) {
	persona, err := parse(p.Config.Persona)
	if err != nil {
		return Result{}, fmt.Errorf("persona %w", err)
	}
	s := &prompt{withoutContexts: !p.Config.IncludeRuntimeContext}
	if p.Config.IncludeHarnessIdentity {
		_, err = s.Section(agent.Plain("harness:identity", agent.OrderIdentity, identity))
	}
	if err == nil && p.Config.Persona != "" {
		_, err = s.Section(agent.Section{
			ID: "deployment:persona", Order: agent.OrderPersona,
			Text: func(_ context.Context, v agent.View) (string, error) { return persona.render(v), nil },
		})
	}
	return Result{Prompt: s}, err
}

type prompt struct {
	withoutContexts bool

	mu                 sync.Mutex
	sections, contexts list
}

var _ agent.Prompt = (*prompt)(nil)

// Section implements agent.Prompt.
func (p *prompt) Section(s agent.Section) (func(), error) { return p.add(&p.sections, s) }

// Context implements agent.Prompt.
func (p *prompt) Context(s agent.Section) (func(), error) { return p.add(&p.contexts, s) }

// Assemble implements agent.Prompt.
func (p *prompt) Assemble(ctx context.Context, v agent.View) (agent.Assembly, error) {
	p.mu.Lock()
	sections, contexts := slices.Clone(p.sections), slices.Clone(p.contexts)
	p.mu.Unlock()
	if p.withoutContexts {
		contexts = nil
	}
	system, err := sections.render(ctx, v)
	if err != nil {
		return agent.Assembly{}, err
	}
	runtime, err := contexts.render(ctx, v)
	if err != nil {
		return agent.Assembly{}, err
	}
	return agent.Assembly{System: system, Contexts: runtime}, nil
}

func (p *prompt) add(to *list, s agent.Section) (undo func(), err error) {
	switch {
	case s.ID == "" || s.Text == nil:
		return nil, &agent.InvalidError{Reason: "a prompt section needs an id and a text"}
	case math.IsNaN(s.Order) || math.IsInf(s.Order, 0):
		return nil, &agent.InvalidError{Reason: fmt.Sprintf("prompt section %q: order must be a finite number", s.ID)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(*to, func(o *agent.Section) bool { return o.ID == s.ID }) {
		return nil, &agent.InvalidError{Reason: fmt.Sprintf("prompt section %q is already registered", s.ID)}
	}
	added := &s
	*to = append(*to, added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*to = slices.DeleteFunc(slices.Clone(*to), func(o *agent.Section) bool { return o == added })
	}, nil
}

// list is in the order in which its sections were added.
type list []*agent.Section

func (l list) render(ctx context.Context, v agent.View) (string, error) {
	slices.SortStableFunc(l, func(a, b *agent.Section) int { return cmp.Compare(a.Order, b.Order) })
	var parts []string
	for _, s := range l {
		text, err := s.Text(ctx, v)
		if err != nil {
			return "", &agent.AssemblyError{ID: s.ID, Err: err}
		}
		if strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n"), nil
}
