package sandboxlocal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"

	"go.uber.org/fx"

	"dsh/internal/dshhome"
	"dsh/module"
	"dsh/modules/internal/rundir"
	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config  Config
	Runtime subprocess.Runtime
	Log     *slog.Logger
}

// Result is what New gives.
type Result struct {
	fx.Out

	Provider sandbox.Provider
	Runner   module.Runner
}

// Module returns the module sandbox-local.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "sandbox-local",
		Aliases:     []string{"@deepseek-ai/dsh-sandbox-local"},
		Summary:     "confines commands with bubblewrap or Landlock",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns a provider. Which directory is protected as dsh's own, DSH_HOME says, which is read here once.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	home, err := dshhome.Dir()
	if err != nil {
		return Result{}, err
	}
	id := make([]byte, 8)
	rand.Read(id) // never fails
	m := &machine{
		config: p.Config, runtime: p.Runtime, log: p.Log, home: home,
		files: rundir.New(home, hex.EncodeToString(id)),
	}
	c := &chain{log: p.Log, backends: backends(m)}
	return Result{Provider: c, Runner: module.Runner{Stop: func(context.Context) error {
		return errors.Join(m.files.RemoveTemp(), m.files.Close())
	}}}, nil
}

// machine is what backends share.
type machine struct {
	config  Config
	runtime subprocess.Runtime
	log     *slog.Logger
	home    string // of dsh, as it was spelled
	files   *rundir.Dir
}
