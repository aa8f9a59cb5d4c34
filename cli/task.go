package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/diag"
	"dsh/internal/visible"
	"dsh/modules/agent"
	"dsh/modules/tools"
)

// taskOptions are the flags of `dsh TASK`.
type taskOptions struct {
	model, resume string
	verbose       bool
}

func (o *taskOptions) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "the model to ask, or script:FILE for one that plays a file")
	f.StringVar(&o.resume, "resume", "", "go on with this session instead of a new one")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on stderr what is done, also when it is no terminal")
}

// scripted is what precedes the file of a model that plays a script.
const scripted = "script:"

// task runs the agent on one task and returns an exitError with the status to end with.
func (a *app) task(text string, o taskOptions) error {
	var report agent.Report
	var failed error
	interrupt, f := a.host(
		func() (*compose.Plan, error) { return a.taskPlan(o) },
		func(ctx context.Context, running *compose.Running) *failure {
			runner, ok := compose.Value[agent.Runner](running)
			if !ok {
				return &failure{Code: codeConfig, Message: "dsh TASK needs agent-runner (agent.Runner), which no enabled row provides; the bundle headless has one"}
			}
			if f := toolless(running); f != nil {
				return f
			}
			report, failed = runner.Run(ctx, a.describe(text, o))
			return nil
		})
	if report.Outcome.Text != "" {
		fmt.Fprintln(a.stdout, visible.Output(strings.TrimSuffix(report.Outcome.Text, "\n")))
	}
	switch {
	case f != nil:
		return a.taskFailed(f)
	case interrupt != 0:
		fmt.Fprintln(a.stderr, "dsh: interrupted"+resumable(report.SessionID))
		return &exitError{interrupt}
	case failed != nil:
		fmt.Fprint(a.stderr, diag.ReportOf(failed))
	default:
		if why := agent.Failure(report.Outcome.Reason); why != "" {
			fmt.Fprintf(a.stderr, "dsh: %s%s\n", why, resumable(report.SessionID))
		}
	}
	return &exitError{agent.ExitStatus(report, failed)}
}

// toolless returns what is wrong with a composition that started and can do nothing: its rows have no tool to offer.
func toolless(running *compose.Running) *failure {
	registry, ok := compose.Value[tools.Registry](running)
	if !ok || len(registry.Definitions()) > 0 {
		return nil
	}
	return &failure{Code: codeConfig, Message: "no enabled row offers a tool; dsh graph shows the rows, and which are disabled"}
}

// describe returns the task as the runner takes it.
func (a *app) describe(text string, o taskOptions) agent.Task {
	say := func(line string) { fmt.Fprintln(a.stderr, line) }
	opened := func(session string) { a.session.Store(session) }
	t := agent.Task{Text: text, Resume: o.resume, Opened: opened, Warn: func(line string) { say("dsh: " + line) }}
	if o.verbose || isTerminal(os.Stderr) {
		t.Progress = say
	}
	return t
}

// resumable says how to go on with a session that did not get to its end.
func resumable(session string) string {
	if session == "" {
		return ""
	}
	return "; to go on: dsh --resume " + session + " TASK"
}

// taskFailed says what kept the task from being done, with the status for that.
func (a *app) taskFailed(f *failure) error {
	code := f.status
	switch {
	case code != 0:
	case f.Code == codeConfig:
		code = agent.ExitUsage
	case f.leftover:
		code = agent.ExitLeftover
	default:
		code = agent.ExitFailed
	}
	a.say(f)
	return &exitError{code}
}

// taskPlan makes the plan, with the model that was asked for.
func (a *app) taskPlan(o taskOptions) (*compose.Plan, error) {
	file, script := strings.CutPrefix(o.model, scripted)
	c, err := a.compose()
	if err != nil {
		return nil, err
	}
	if o.model != "" && !script {
		c.set("--model "+o.model, "llm.model", o.model)
	}
	if script {
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.began, file) // as patch files are, whatever -C says
		}
		c.layers = append(c.layers, compose.Parse(compose.Source{Name: "--model", File: "--model " + o.model, Text: []byte(
			"- {id: llm, disabled: true}\n- {id: llm-script, disabled: false, config: {file: " + quoted(file) + "}}\n")}))
	}
	return c.plan()
}

// quoted returns a value as YAML: JSON is that.
func quoted(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // text and numbers always can be
	}
	return string(text)
}

// isTerminal reports whether f is a terminal, or another character device, such as nobody pipes a log into.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Name() != filepath.Base(os.DevNull)
}
