// Package ticket tells commands and models which ticket they work on: commands by the variable DSH_TICKET, models by a
// tool.
//
// Row ticket. It needs shell.Facts and tools.Registry, provides nothing, and takes both registrations back when it stops.
package ticket

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// Config is the configuration of the row ticket.
type Config struct {
	ID string `koanf:"id" doc:"the ticket that is worked on; empty: none"`
}

// Validate returns what in c cannot work.
func (c Config) Validate() error {
	if strings.ContainsAny(c.ID, " \t\r\n\x00") {
		return module.Field("id", "must be one word, got %q", c.ID)
	}
	return nil
}

// Params is what New takes.
type Params struct {
	fx.In
	Config Config
	Facts  shell.Facts
	Tools  tools.Registry
}

// New returns what registers the variable and the tool, and takes them back.
func New(p Params) module.Runner {
	return module.Registering(
		func() (func(), error) { return p.Facts.Register(p.variable()) },
		func() (func(), error) { return p.Tools.Register(p.tool()) },
	)
}

func (p Params) variable() shell.Contributor {
	return shell.Contributor{
		Name:      "ticket",
		Variables: []shell.Variable{{Key: "DSH_TICKET", Description: "the ticket that is worked on"}},
		Resolve: func(context.Context, shell.Execution) (map[string]string, error) {
			return map[string]string{"DSH_TICKET": p.Config.ID}, nil
		},
	}
}

func (p Params) tool() tools.Definition {
	return tools.Definition{
		Name:        "ticket",
		Description: "Returns the id of the ticket that you work on.",
		Parameters:  &tools.Schema{Type: "object", Closed: true},
		Output:      &tools.Schema{Type: "string"},
		Execute:     func(context.Context, tools.Execution) (any, error) { return p.Config.ID, nil },
		Render: func(value json.RawMessage) (string, error) {
			var id string
			err := json.Unmarshal(value, &id)
			return "You work on ticket " + id + ".", err
		},
	}
}

// Module returns the module ticket.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name: "ticket", Summary: "tells commands and models which ticket they work on", Constructor: New,
	})
}

//go:embed cordis.patch.yaml
var patch []byte

// Bundle returns the row and its module.
func Bundle() module.Bundle {
	return module.Bundle{Name: "ticket", File: "ticket/cordis.patch.yaml", Patch: patch, Modules: []module.Module{Module()}}
}
