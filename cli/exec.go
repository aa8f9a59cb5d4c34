package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/visible"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/tools"
)

// bashTool is the tool that runs the command.
const bashTool = "bash"

type execOptions struct {
	mode                string
	timeout             time.Duration
	json, render, stdin bool
}

func (a *app) execCommand() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] COMMAND...",
		Short: "run one command through the bash tool, without a model",
		Long: `Runs one shell command the way an agent's would be run. The words of COMMAND are joined by single spaces. Output passes
through unchanged, and the exit status is the command's own: 128+N if signal N ended it, 124 if the timeout did, 125 if
dsh could not do its part, and 130, 143 or 129 if dsh itself was interrupted, terminated or hung up.`,
		Example: `  dsh exec 'make test && echo ok'
  dsh exec --timeout 20m -- ./slow.sh --all
  dsh exec --mode read-only --json 'ls | wc -l'`,
		Args: needsCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && o.timeout < time.Millisecond {
				return fmt.Errorf("--timeout takes a positive duration, such as 90s or 20m, got %v", o.timeout)
			}
			return a.exec(strings.Join(args, " "), o)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.mode, "mode", "", "what the command may do to files: read-only, workspace-write, danger-full-access")
	f.DurationVar(&o.timeout, "timeout", 0, "end the command after this long, such as 90s or 20m; raises the cap with it")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object instead of passing output through")
	f.BoolVar(&o.render, "render", false, "print the text that a model would see, control characters made visible, instead of passing output through")
	f.BoolVar(&o.stdin, "stdin", false, "pass dsh's own standard input on; by default the command reads nothing")
	exclude(cmd, "json", "render")
	return cmd
}

func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s takes a command to run", cmd.CommandPath())
	}
	return nil
}

// exec runs one command and returns an exitError with the status to end with.
func (a *app) exec(command string, o execOptions) error {
	var code int
	interrupt, failed := a.host(
		func() (*compose.Plan, error) { return a.execPlan(o) },
		func(ctx context.Context, running *compose.Running) (f *failure) {
			code, f = a.call(ctx, running, command, o)
			return f
		})
	if failed != nil {
		return a.fail(o, *failed)
	}
	if interrupt != 0 {
		code = interrupt
	}
	return &exitError{code}
}

// execPlan makes the plan. A timeout of the user's own is over no cap: the rows that run commands get one as high.
func (a *app) execPlan(o execOptions) (*compose.Plan, error) {
	c, err := a.compose()
	if err != nil {
		return nil, err
	}
	if o.mode != "" {
		c.set("--mode "+o.mode, "sandbox-policy.mode", o.mode)
	}
	plan, err := c.plan()
	if err != nil || o.timeout == 0 {
		return plan, err
	}
	for _, m := range plan.Mounts() {
		if !slices.Contains(m.Module.Provides(), shell.Key.Type()) {
			continue
		}
		if limit, ok := setting(m.Config, "maxTimeoutMs"); ok && limit.CanInt() && limit.Int() < o.timeout.Milliseconds() {
			c.set("--timeout "+o.timeout.String(), m.ID+".maxTimeoutMs", o.timeout.Milliseconds())
		}
	}
	return c.plan()
}

// setting returns the field of config that a row calls key.
func setting(config any, key string) (reflect.Value, bool) {
	for _, f := range configFields(reflect.ValueOf(config)) {
		if f.key == key {
			return f.value, true
		}
	}
	return reflect.Value{}, false
}

// call carries the command through the tool bash, prints its result, and returns the status that stands for it.
func (a *app) call(ctx context.Context, running *compose.Running, command string, o execOptions) (int, *failure) {
	registry, ok := compose.Value[tools.Registry](running)
	if !ok {
		return 0, &failure{Code: codeConfig, Message: "dsh exec needs tools (tools.Registry), which no enabled row provides"}
	}
	offered := func(d tools.Definition) bool { return d.Name == bashTool }
	if !slices.ContainsFunc(registry.Definitions(), offered) {
		return 0, &failure{Code: codeConfig, Message: "dsh exec needs the tool bash, which no enabled row offers; dsh graph shows the rows, and which are disabled"}
	}
	if f := unenforced(running, sandbox.Mode(o.mode)); f != nil {
		return 0, f
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e := tools.Execution{CallID: "exec", Name: bashTool}
	arguments := map[string]any{"command": command, "description": "dsh exec"}
	if o.timeout > 0 {
		arguments["timeoutMs"] = o.timeout.Milliseconds()
	}
	var err error
	if e.Arguments, err = json.Marshal(arguments); err != nil {
		return 0, &failure{Code: tools.CodeInternal, Message: err.Error()}
	}
	if o.stdin {
		e.Stdin = os.Stdin
	}
	out := &passthrough{stdout: a.stdout, stderr: a.stderr, broken: cancel}
	if !o.json && !o.render {
		e.Progress = out.write
	}
	result := registry.Execute(ctx, e)
	if out.isBroken() {
		return exitPipe, nil
	}
	if result.Error != nil {
		return 0, &failure{Code: result.Error.Code, Message: result.Error.Message}
	}
	var r shell.Result
	if err := json.Unmarshal(result.Value, &r); err != nil {
		return 0, &failure{Code: tools.CodeInternal, Message: err.Error()}
	}
	if o.json {
		fmt.Fprintf(a.stdout, "%s\n", result.Value)
	}
	if o.render {
		fmt.Fprintln(a.stdout, visible.Output(strings.TrimSuffix(result.Content, "\n")))
	}
	return status(r), nil
}

// unenforced returns what is wrong with a mode that the user asked for where no row enforces it.
func unenforced(running *compose.Running, mode sandbox.Mode) *failure {
	executor, ok := compose.Value[shell.Executor](running)
	if !ok || mode == "" || mode == sandbox.DangerFullAccess {
		return nil
	}
	if _, confines := executor.Mode(); confines {
		return nil
	}
	return &failure{Code: codeConfig, Message: fmt.Sprintf("--mode %s is asked for, but the row that provides shell confines nothing", mode)}
}

// status returns the exit status that stands for a result.
func status(r shell.Result) int {
	switch {
	case r.TimedOut:
		return exitTimedOut
	case r.ExitCode != nil:
		return *r.ExitCode
	case r.Signal != nil:
		return exitSignal + signalNumber(*r.Signal)
	}
	return exitOurs
}

// fail says what went wrong, on stderr for a person and with --json on stdout for a program.
func (a *app) fail(o execOptions, f failure) error {
	if o.json {
		line, err := json.Marshal(map[string]failure{"error": f})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s\n", line)
	}
	a.say(&f)
	if f.status == 0 {
		f.status = exitOurs
	}
	return &exitError{f.status}
}
