package ticket_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"dsh/bundles/base"
	"dsh/composetest"
	"dsh/module"
	"dsh/modules/shell"
	"dsh/modules/tools"

	"example.com/custom-module/ticket"
)

// TestMain fails the package when a test leaves a goroutine or a process behind.
func TestMain(m *testing.M) { composetest.Main(m) }

// unconfined takes the shell that works on every machine: what is tested here has nothing to do with a sandbox.
const unconfined = `
- {id: bash-sandbox, disabled: true}
- {id: bash-local, disabled: false}
`

func call(t *testing.T, registry tools.Registry, name string, arguments any) tools.Result {
	t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return registry.Execute(t.Context(), tools.Execution{CallID: "1", Name: name, Arguments: text})
}

func TestCommandsAndModelsAreToldTheTicket(t *testing.T) {
	running := composetest.Start(t, composetest.With(base.Bundle(), ticket.Bundle()),
		composetest.Patch(unconfined), composetest.Set("ticket.id=ABC-7"))
	registry := composetest.Value[tools.Registry](t, running)

	if r := call(t, registry, "ticket", struct{}{}); r.Content != "You work on ticket ABC-7." {
		t.Errorf("the tool says %q, %v", r.Content, r.Error)
	}
	r := call(t, registry, "bash", map[string]any{"command": `echo "on $DSH_TICKET"`, "description": "test"})
	if !strings.Contains(r.Content, "on ABC-7") {
		t.Errorf("the command says %q, %v", r.Content, r.Error)
	}
}

func TestATicketOfTwoWordsIsAFault(t *testing.T) {
	_, err := composetest.Plan(t, composetest.With(base.Bundle(), ticket.Bundle()), composetest.Patch(unconfined),
		composetest.Patch("- id: ticket\n  config: {id: two words}"))
	if err == nil || !strings.Contains(err.Error(), `row "ticket": id must be one word, got "two words"`) {
		t.Errorf("got %v", err)
	}
}

// facts stands in for the row shell-env, and notes what is registered with it.
type facts struct {
	shell.Facts
	registered []string
}

func (f *facts) Register(c shell.Contributor) (undo func(), err error) {
	f.registered = append(f.registered, c.Name)
	return func() { f.registered = nil }, nil
}

func (f *facts) Collect(context.Context, shell.Execution) (map[string]string, error) {
	return map[string]string{}, nil
}

// TestTheRowTakesBackWhatItRegistered swaps the row that it registers with.
func TestTheRowTakesBackWhatItRegistered(t *testing.T) {
	fake := &facts{}
	stand := module.Define(module.Spec[struct{}]{Name: "fake-facts", Constructor: func() shell.Facts { return fake }})
	running := composetest.Start(t, composetest.With(base.Bundle(), ticket.Bundle()), composetest.Patch(unconfined),
		composetest.Replace("shell-env", stand))
	if len(fake.registered) != 1 {
		t.Errorf("registered: %v", fake.registered)
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	if len(fake.registered) != 0 {
		t.Errorf("after the stop: %v", fake.registered)
	}
}

// TestTheBundleIsAlsoOneFxApp mounts the rows as a program with an fx app of its own does.
func TestTheBundleIsAlsoOneFxApp(t *testing.T) {
	composetest.PlainFx(t, composetest.With(base.Bundle(), ticket.Bundle()), composetest.Set("ticket.id=ABC-7"))
}
