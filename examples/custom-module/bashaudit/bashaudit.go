// Package bashaudit runs shell commands as bash-local does, and keeps a record of each.
//
// Row bash-audit. It provides shell.Executor and needs subprocess.Runtime. A line of JSON is written to the file before a
// command is run; a command that cannot be recorded is not run.
package bashaudit

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/bashlocal"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

// Config is the configuration of the row bash-audit: where the record is, and the settings of bash-local.
type Config struct {
	bashlocal.Config `koanf:",squash"`

	File string `koanf:"file" doc:"the record, absolute; each command adds a line"`
}

// DefaultConfig returns what holds when a row says nothing.
func DefaultConfig() Config {
	return Config{Config: bashlocal.DefaultConfig(), File: filepath.Join(os.TempDir(), "dsh-audit.jsonl")}
}

// Validate returns everything in c that cannot work.
func (c Config) Validate() error {
	if !filepath.IsAbs(c.File) {
		return errors.Join(c.Config.Validate(), module.Field("file", "must be an absolute path, got %q", c.File))
	}
	return c.Config.Validate()
}

// Params is what New takes.
type Params struct {
	fx.In
	Config  Config
	Runtime subprocess.Runtime
}

// Result is what New gives.
type Result struct {
	fx.Out
	Executor shell.Executor
	Run      module.Runner
}

// New returns the executor of bash-local with a record of what it runs.
func New(p Params) (Result, error) {
	local, err := bashlocal.New(bashlocal.Params{Config: p.Config.Config, Runtime: p.Runtime})
	if err != nil {
		return Result{}, err
	}
	return Result{Executor: &executor{Executor: local.Executor, file: p.Config.File}, Run: local.Run}, nil
}

type executor struct {
	shell.Executor
	file string
}

// Run implements shell.Executor.
func (x *executor) Run(ctx context.Context, s shell.Spec) (shell.Result, error) {
	if err := x.record(s); err != nil {
		return shell.Result{}, err
	}
	return x.Executor.Run(ctx, s)
}

// Start implements shell.Executor.
func (x *executor) Start(ctx context.Context, s shell.Spec) (shell.Process, error) {
	if err := x.record(s); err != nil {
		return nil, err
	}
	return x.Executor.Start(ctx, s)
}

// record appends a line in one write, which concurrent calls do not mix up.
func (x *executor) record(s shell.Spec) error {
	line, err := json.Marshal(map[string]string{
		"time": time.Now().Format(time.RFC3339Nano), "workdir": s.Workdir, "command": s.Command,
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(x.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record the command: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Module returns the module bash-audit.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name: "bash-audit", Summary: "runs shell commands with bash, unconfined, and keeps a record of each",
		Platforms: module.Unix, Default: DefaultConfig, Constructor: New,
	})
}

//go:embed cordis.patch.yaml
var patch []byte

// Bundle returns the row and its module.
func Bundle() module.Bundle {
	return module.Bundle{
		Name: "bash-audit", File: "bashaudit/cordis.patch.yaml", Patch: patch, Modules: []module.Module{Module()},
	}
}
