package agent

import (
	"context"
	"errors"

	"dsh/modules/llm"
	"dsh/modules/session"
)

// Prompt is where rows say what a model is told besides the conversation. Its methods may be called concurrently.
//
// Sections are the system prompt: they hold for as long as the composition runs, and are best left alone, because a
// provider's cache begins with them. Contexts are what may be different at every step; a model is told them again when
// they are.
type Prompt interface {
	// Section adds a section; undo removes it, and nothing else, however often it is called. An ID that is taken by another
	// section, or a missing part, is an *InvalidError.
	Section(s Section) (undo func(), err error)
	// Context is Section for the runtime context.
	Context(s Section) (undo func(), err error)
	// Assemble renders what is there. Sections come in ascending order, those of one order as they were added; what renders
	// to white space alone is left out. The error of a section's Text is an *AssemblyError, and there is no Assembly then.
	Assemble(ctx context.Context, v View) (Assembly, error)
}

// Section is a part of what a model is told.
type Section struct {
	ID    string  // such as tool:bash
	Order float64 // lower comes first
	// Text returns the part. It may be called concurrently, and returns promptly.
	Text func(ctx context.Context, v View) (string, error)
}

// Plain returns a Section that always says text.
func Plain(id string, order float64, text string) Section {
	return Section{ID: id, Order: order, Text: func(context.Context, View) (string, error) { return text, nil }}
}

// View is what a section may speak about.
type View struct {
	Session session.Header
	Target  llm.Target // the model that will read it
}

// Assembly is what a model is told.
type Assembly struct {
	System   string // the sections, joined by blank lines
	Contexts string // the contexts, joined by blank lines
}

// AssemblyError is a section that could not say what it has to.
type AssemblyError struct {
	ID  string
	Err error
}

// Error names the section.
func (e *AssemblyError) Error() string { return "prompt section " + e.ID + ": " + e.Err.Error() }

// Unwrap returns what the section failed with.
func (e *AssemblyError) Unwrap() error { return e.Err }

// The places of sections and contexts that more than one row has to know.
const (
	OrderIdentity = -100
	OrderPersona  = 0
	OrderBash     = 105
	OrderJobs     = 106
	OrderSandbox  = 110 // a context
	OrderApproval = 115 // a context
)

// Add adds sections and contexts to p, which may be nil for none, and returns what removes them all. When one is refused
// none is left.
func Add(p Prompt, sections, contexts []Section) (undo func(), err error) {
	var undos []func()
	undo = func() {
		for _, u := range undos {
			u()
		}
	}
	if p == nil {
		return undo, nil
	}
	add := func(to func(Section) (func(), error), all []Section) (err error) {
		for _, s := range all {
			u, e := to(s)
			if e != nil {
				err = errors.Join(err, e)
				continue
			}
			undos = append(undos, u)
		}
		return err
	}
	if err := errors.Join(add(p.Section, sections), add(p.Context, contexts)); err != nil {
		undo()
		return func() {}, err
	}
	return undo, nil
}
