package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"dsh/compose"
	"dsh/internal/diag"
	"dsh/modules/tools"
)

// Codes of dsh's own failures, beside those of tools.
const (
	codeConfig = "CONFIG"
	codeStart  = "START"
)

// failure is dsh not doing its part, as `dsh exec --json` prints it.
type failure struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Faults  []fault `json:"faults,omitempty"`

	report   string // for stderr, when it is more than Message
	status   int    // to end with; 0: the command's own choice
	leftover bool   // the composition did not stop: something may be left running
}

// host makes a plan, runs body in its composition, and stops that, whatever happens. A signal ends body's context;
// interrupt is then the status that stands for it, else 0.
func (a *app) host(plan func() (*compose.Plan, error), body func(context.Context, *compose.Running) *failure) (interrupt int, f *failure) {
	// The signals come first: a hang-up that is ignored, as under nohup, can be told only before Prepare takes it over.
	ctx, signals := compose.WatchSignals(context.Background(), a.exitAtOnce)
	defer signals.Stop()
	// A reader that leaves is an error of the write, not the end of dsh with its commands still running.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	if a.build.Prepare != nil {
		if err := a.build.Prepare(); err != nil {
			return 0, &failure{Code: codeStart, Message: err.Error()}
		}
	}
	p, err := plan()
	if err != nil {
		return 0, configFailure(err)
	}
	running, err := compose.Apply(ctx, p, compose.RunOptions{Log: a.log, Began: signals.OnSecond})
	if err != nil {
		f = &failure{Code: codeStart, Message: err.Error(), report: diag.ReportOf(err)}
	} else {
		f = body(ctx, running)
		if err := running.Stop(); err != nil {
			f = f.and(err)
		}
	}
	if code, ok := interruptStatus(ctx); ok {
		interrupt = code
		if f != nil { // somebody ended dsh, and that is the news
			f.Code, f.status = tools.CodeAborted, interrupt
		}
	}
	return interrupt, f
}

// exitAtOnce ends the program on a second signal, when everything that it owned was killed.
func (a *app) exitAtOnce(status int) {
	session, _ := a.session.Load().(string)
	fmt.Fprintln(a.stderr, "dsh: ended at once, on the second signal; what was running was killed"+resumable(session))
	os.Exit(status)
}

// say tells a person what f is.
func (a *app) say(f *failure) {
	if f.report != "" {
		fmt.Fprint(a.stderr, f.report)
		return
	}
	fmt.Fprintf(a.stderr, "dsh: %s\n", f.Message)
}

// interruptStatus returns the exit status for the signal that ended ctx, if one did.
func interruptStatus(ctx context.Context) (int, bool) {
	if e, ok := errors.AsType[*compose.InterruptedError](context.Cause(ctx)); ok {
		return e.ExitCode(), true
	}
	return 0, false
}

// and adds a stop that failed to f, which may be nil.
func (f *failure) and(err error) *failure {
	if f == nil {
		return &failure{Code: tools.CodeInternal, Message: err.Error(), report: diag.ReportOf(err), leftover: true}
	}
	both := *f
	both.Message, both.report = f.Message+"; "+err.Error(), "dsh: "+f.Message+"\n"+diag.ReportOf(err)
	both.leftover = true
	return &both
}

// fault is one diagnostic, as --json prints it.
type fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Row     string `json:"row"`
	Slug    string `json:"slug"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func configFailure(err error) *failure {
	f := &failure{Code: codeConfig, Message: err.Error()}
	var faults *compose.Faults
	if errors.As(err, &faults) {
		f.report = faults.Report()
		for _, d := range faults.Diagnostics() {
			f.Faults = append(f.Faults, asFault(d))
		}
	}
	return f
}

func asFault(d *diag.Diagnostic) fault {
	return fault{
		File: d.Place.File, Line: d.Place.Line, Col: d.Place.Column,
		Row: d.Row, Slug: d.Slug, Message: d.Message, Hint: d.Hint,
	}
}
