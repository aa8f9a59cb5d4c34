package subprocesslocal

import (
	"log/slog"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/subprocess"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config Config
	Log    *slog.Logger
}

// Result is what New gives.
type Result struct {
	fx.Out

	Runtime subprocess.Runtime
	Runner  module.Runner
}

// Module returns the module subprocess-local.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "subprocess-local",
		Aliases:     []string{"@deepseek-ai/dsh-subprocess-local"},
		Summary:     "starts programs and owns every process that comes of them",
		Platforms:   module.Unix,
		Default:     DefaultConfig,
		Constructor: New,
	})
}
