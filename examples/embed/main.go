// Command embed runs one command through dsh's rows in an fx app of its own: what a Go program does that has an app
// already and wants the tool bash in it.
//
//	go run ./examples/embed 'echo hello'
//
// A program without an app hands the plan to compose.Apply instead, which gives each row its own budget and contains what
// goes wrong with it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"go.uber.org/fx"

	"dsh/bundles/base"
	"dsh/compose"
	"dsh/module"
	"dsh/modules/subprocesslocal"
	"dsh/modules/tools"
)

func main() {
	// Before anything else runs: this process is going to own others.
	err := subprocesslocal.PrepareHost()
	if err == nil {
		err = run(context.Background(), strings.Join(os.Args[1:], " "), nil, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run carries out one command and writes what a model would see of it. Sets are changes, as ID.PATH=VALUE.
func run(ctx context.Context, command string, sets []string, out io.Writer) (err error) {
	rows, err := mount(sets)
	if err != nil {
		return err
	}
	var registry tools.Registry
	app := fx.New(
		fx.NopLogger,
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }),
		rows,
		fx.Populate(&registry), // the app's own parts would take it as a parameter
	)
	startCtx, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(startCtx); err != nil {
		return err
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
		defer cancel()
		err = errors.Join(err, app.Stop(stopCtx))
	}()

	arguments, err := json.Marshal(map[string]string{"command": command, "description": "an example"})
	if err != nil {
		return err
	}
	result := registry.Execute(ctx, tools.Execution{CallID: "1", Name: "bash", Arguments: arguments})
	fmt.Fprintln(out, result.Content)
	if result.Error != nil {
		return result.Error
	}
	return nil
}

// mount returns the rows of the bundle base as one fx option.
func mount(sets []string) (fx.Option, error) {
	bundle := base.Bundle()
	registry, err := module.NewRegistry(bundle)
	if err != nil {
		return nil, err
	}
	machine, err := compose.ThisMachine()
	if err != nil {
		return nil, err
	}
	layers := compose.Load(compose.Inputs{Bundles: []module.Bundle{bundle}, Sets: sets})
	plan, err := compose.MakePlan(layers, registry, machine, compose.FoldOptions{})
	if err != nil {
		return nil, err
	}
	var options []fx.Option
	for _, m := range plan.Mounts() {
		options = append(options, module.Fx(m.Module, m.Config))
	}
	return fx.Options(options...), nil
}
