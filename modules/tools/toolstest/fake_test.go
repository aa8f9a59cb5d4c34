package toolstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"dsh/modules/tools"
)

// fake keeps every promise but one.
type fake struct {
	broken defect

	mu     sync.Mutex
	tools  []*tools.Definition
	before []*tools.BeforeHook
	after  []*tools.AfterHook
}

// defect is a promise that a fake breaks.
type defect string

const (
	hooksBackwards   defect = "asks the last hook first"
	hooksAll         defect = "asks hooks after one has decided"
	hooksEarly       defect = "asks hooks about invalid calls"
	afterBackwards   defect = "shows results to the last hook first"
	afterSkipsDenied defect = "does not show denials"
	askAllows        defect = "takes an ask for a yes"
	unknownAllows    defect = "takes an unknown verdict for a yes"
	panics           defect = "lets panics through"
	abandons         defect = "does not wait for a cancelled tool"
	succeedsLate     defect = "returns what a cancelled tool returned"
	hidesFailure     defect = "calls every failure of a cancelled tool aborted"
	runsCancelled    defect = "executes calls that come cancelled"
	runsAfterCancel  defect = "executes calls that were cancelled in a hook"
	trustsOutput     defect = "does not validate values"
	trustsValue      defect = "does not validate a replaced value"
	keepsRender      defect = "does not render a replaced value"
	pardons          defect = "lets a hook turn a failure into a success"
	sharesArguments  defect = "gives all the same bytes"
	losesCodes       defect = "gives every error the same code"
	undoByName       defect = "undo removes whoever has the name"
	undoNothing      defect = "undo does nothing"
	takesTwice       defect = "registers a name twice"
	takesAnySchema   defect = "registers any schema"
	sorts            defect = "sorts definitions"
	dropsUnnamed     defect = "drops arguments that the schema does not name"
	takesLoss        defect = "takes arguments that do not survive decoding"
)

func (f *fake) Register(d tools.Definition) (func(), error) {
	if d.Name == "" || d.Output == nil || d.Render == nil || d.Execute == nil || d.Parameters == nil || d.Parameters.Type != "object" {
		return nil, errors.New("a part is missing")
	}
	if err := errors.Join(d.Parameters.Check("parameters"), d.Output.Check("output")); err != nil && f.broken != takesAnySchema {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.find(d.Name) != nil && f.broken != takesTwice {
		return nil, errors.New("the name is taken")
	}
	f.tools = append(f.tools, &d)
	if f.broken == sorts {
		slices.SortFunc(f.tools, func(a, b *tools.Definition) int { return strings.Compare(a.Name, b.Name) })
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tools = slices.DeleteFunc(slices.Clone(f.tools), func(o *tools.Definition) bool {
			return f.broken != undoNothing && (o == &d || f.broken == undoByName && o.Name == d.Name)
		})
	}, nil
}

func (f *fake) find(name string) *tools.Definition {
	for _, d := range slices.Backward(f.tools) {
		if d.Name == name {
			return d
		}
	}
	return nil
}

func (f *fake) Definitions() []tools.Definition {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ds []tools.Definition
	for _, d := range f.tools {
		ds = append(ds, *d)
	}
	return ds
}

func (f *fake) BeforeExecute(h tools.BeforeHook) func() {
	f.before = append(f.before, &h)
	return func() {
		if f.broken != undoNothing {
			f.before = slices.DeleteFunc(f.before, func(o *tools.BeforeHook) bool { return o == &h })
		}
	}
}

func (f *fake) AfterExecute(h tools.AfterHook) func() {
	f.after = append(f.after, &h)
	return func() {
		if f.broken != undoNothing {
			f.after = slices.DeleteFunc(f.after, func(o *tools.AfterHook) bool { return o == &h })
		}
	}
}

func (f *fake) Execute(ctx context.Context, e tools.Execution) tools.Result {
	f.mu.Lock()
	d := f.find(e.Name)
	f.mu.Unlock()
	if ctx.Err() != nil && f.broken != runsCancelled {
		return f.fail(tools.CodeAbortedBefore, "tool call aborted before dispatch")
	}
	if len(e.Arguments) == 0 {
		e.Arguments = json.RawMessage("{}")
	}
	var denial *tools.Error
	var err error
	if f.broken == hooksEarly {
		denial, err = f.admit(ctx, e)
	}
	arguments, lossy := tools.Decode(e.Arguments)
	if lossy != nil && f.broken == takesLoss {
		lossy = json.Unmarshal(e.Arguments, &arguments)
	}
	if lossy != nil {
		return f.fail(tools.CodeInvalidArgs, "tool execution arguments must be losslessly JSON-serializable")
	}
	if d == nil {
		return f.fail(tools.CodeUnknownTool, fmt.Sprintf("unknown tool %q", e.Name))
	}
	if vs := d.Parameters.Violations(arguments); vs != nil {
		return f.fail(tools.CodeInvalidArgs, "invalid arguments: "+strings.Join(vs, "; "))
	}
	if object, ok := arguments.(map[string]any); ok && f.broken == dropsUnnamed {
		for name := range object {
			if !slices.ContainsFunc(d.Parameters.Properties, func(p tools.Property) bool { return p.Name == name }) {
				delete(object, name)
			}
		}
		e.Arguments, _ = json.Marshal(object)
	}
	if f.broken != hooksEarly {
		denial, err = f.admit(ctx, e)
	}
	switch {
	case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())):
		return f.failure(err)
	case denial != nil && f.broken == afterSkipsDenied:
		return f.failure(denial)
	case denial != nil:
		return f.observe(ctx, d, e, f.failure(denial))
	case ctx.Err() != nil && f.broken != runsAfterCancel && f.broken != runsCancelled:
		return f.fail(tools.CodeAbortedBefore, "tool call aborted before dispatch")
	}
	return f.observe(ctx, d, e, f.body(ctx, d, e))
}

func (f *fake) admit(ctx context.Context, e tools.Execution) (denial *tools.Error, err error) {
	hooks := slices.Clone(f.before)
	if f.broken == hooksBackwards {
		slices.Reverse(hooks)
	}
	for _, h := range hooks {
		var d tools.Decision
		err := f.guard(func() (err error) {
			d, err = (*h)(ctx, f.own(e))
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case denial != nil || d.Verdict == tools.Allow, d.Verdict == tools.Ask && f.broken == askAllows, d.Verdict > tools.Ask && f.broken == unknownAllows:
			continue
		}
		denial = &tools.Error{Code: tools.CodeDenied, Message: d.Reason}
		if d.Reason == "" {
			denial.Message = fmt.Sprintf("tool %q requires approval (not yet supported)", e.Name)
		}
		if f.broken != hooksAll {
			return denial, nil
		}
	}
	return denial, nil
}

func (f *fake) body(ctx context.Context, d *tools.Definition, e tools.Execution) tools.Result {
	var value any
	run := func() (err error) {
		value, err = d.Execute(ctx, f.own(e))
		return err
	}
	var err error
	if f.broken == abandons {
		done := make(chan error, 1)
		go func() { done <- f.guard(run) }()
		select {
		case err = <-done:
		case <-ctx.Done():
			return f.fail(tools.CodeAborted, "tool call aborted")
		}
	} else {
		err = f.guard(run)
	}
	if ctx.Err() != nil {
		var own *tools.Error
		ended := errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)) || errors.As(err, &own) && own.Code == tools.CodeAborted
		if ended || err == nil && f.broken != succeedsLate || f.broken == hidesFailure {
			return f.fail(tools.CodeAborted, "tool call aborted")
		}
	}
	if err != nil {
		return f.failure(err)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return f.invalid(d, "value is not lossless JSON")
	}
	return f.present(d, bytes.TrimSpace(b.Bytes()), f.broken != trustsOutput)
}

func (f *fake) present(d *tools.Definition, raw json.RawMessage, validate bool) tools.Result {
	value, err := tools.Decode(raw)
	if err != nil {
		return f.invalid(d, "value is not lossless JSON")
	}
	if vs := d.Output.Violations(value); vs != nil && validate {
		return f.invalid(d, strings.Join(vs, "; "))
	}
	var content string
	err = f.guard(func() (err error) {
		content, err = d.Render(raw)
		return err
	})
	if err == nil && !utf8.ValidString(content) {
		err = errors.New("not UTF-8")
	}
	if err != nil {
		return f.invalid(d, "output.render failed: "+err.Error())
	}
	return tools.Result{Content: content, Value: raw}
}

func (f *fake) observe(ctx context.Context, d *tools.Definition, e tools.Execution, r tools.Result) tools.Result {
	hooks := slices.Clone(f.after)
	if f.broken == afterBackwards {
		slices.Reverse(hooks)
	}
	for _, h := range hooks {
		var next tools.Result
		err := f.guard(func() (err error) {
			next, err = (*h)(ctx, e, r)
			return err
		})
		newContent, newValue := next.Content != r.Content, next.Value != nil && !bytes.Equal(next.Value, r.Value)
		switch {
		case err != nil:
			return f.failure(err)
		case r.Error != nil && newValue && f.broken != pardons:
			return f.fail(tools.CodeInternal, "tools/post-execute cannot replace the value of a failed result")
		case r.Error != nil && f.broken != pardons:
			r.Content = next.Content
		case next.Error != nil:
			blocked := *next.Error
			if !newContent {
				next.Content = "tool result blocked by post-execute policy"
			}
			if blocked.Code == "" {
				blocked = tools.Error{Code: tools.CodeDenied, Message: next.Content}
			}
			r = tools.Result{Content: next.Content, Error: &blocked}
		case newValue && newContent:
			return f.fail(tools.CodeInternal, "tools/post-execute accept decision cannot replace both value and content")
		case newValue && f.broken == keepsRender:
			r.Value = next.Value
		case newValue:
			r = f.present(d, next.Value, f.broken != trustsValue)
		default:
			r = next
		}
	}
	return r
}

func (f *fake) guard(run func() error) (err error) {
	if f.broken != panics {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
	}
	return run()
}

func (f *fake) own(e tools.Execution) tools.Execution {
	if f.broken != sharesArguments {
		e.Arguments = bytes.Clone(e.Arguments)
	}
	return e
}

func (f *fake) failure(err error) (r tools.Result) {
	defer func() {
		if f.broken != panics && recover() != nil {
			r = f.fail(tools.CodeInternal, "unprintable")
		}
	}()
	code := tools.CodeInternal
	var coded *tools.Error
	if errors.As(err, &coded) && coded != nil && f.broken != losesCodes {
		code = coded.Code
	}
	return f.fail(code, err.Error())
}

func (f *fake) invalid(d *tools.Definition, fault string) tools.Result {
	return f.fail(tools.CodeInvalidOutput, fmt.Sprintf("tool %q returned invalid output: %s", d.Name, fault))
}

func (f *fake) fail(code, message string) tools.Result {
	return tools.Result{Content: "Error: " + message, Error: &tools.Error{Code: code, Message: message}}
}
