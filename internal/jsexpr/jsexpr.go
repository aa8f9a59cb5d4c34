package jsexpr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// The bounds of one expression.
const (
	MaxTime   = 100 * time.Millisecond
	MaxResult = 64 << 10 // bytes of the result as JSON
	MaxText   = 16 << 10 // bytes of the expression itself
	maxStack  = 512
)

// Globals is what an expression can see of the machine.
type Globals struct {
	Platform, Arch string
	Env            map[string]string
	Dir            string
	PID            int
	ExecPath       string
	Home           string
}

// Result is what an expression gave.
type Result struct {
	Value     any  // nil, bool, int, float64, string, []any, or map[string]any; int where a number is integral
	Undefined bool // Value is nil, and in a map the key is absent
	FromEnv   bool // a variable that is set was read: the value may be a secret
}

// Error is an expression that gave nothing.
type Error struct {
	Message string // goes on from "the expression ": "threw an error: ..."
	Hint    string
	Token   string // the part of the expression that is wrong, where one is known
	Offset  int    // of the wrong part in bytes, or -1
}

// Error returns the message.
func (e *Error) Error() string { return "the expression " + e.Message }

// Eval evaluates an expression. The error is an *Error and never holds the value of a variable.
func Eval(text string, g *Globals) (Result, error) {
	return run(text, g, func(v goja.Value) (r Result, err error) {
		if v == nil || goja.IsUndefined(v) {
			return Result{Undefined: true}, nil
		}
		var e exporter
		r.Value, err = e.export(v, 0)
		return r, err
	})
}

// Truthy evaluates an expression and says whether JavaScript takes its value for true.
func Truthy(text string, g *Globals) (bool, error) {
	r, err := run(text, g, func(v goja.Value) (Result, error) {
		return Result{Value: v != nil && v.ToBoolean()}, nil
	})
	if err != nil {
		return false, err
	}
	return r.Value.(bool), nil
}

// run evaluates text on a goroutine of its own, as built-ins that loop natively do not heed an interrupt: one that is
// still at it a while later is left behind, and the fault that this makes ends the host soon.
func run(text string, g *Globals, give func(goja.Value) (Result, error)) (Result, error) {
	if len(text) > MaxText {
		return Result{}, &Error{Message: fmt.Sprintf("is longer than %d KiB", MaxText>>10), Offset: -1}
	}
	if strings.TrimSpace(text) == "" {
		return Result{}, &Error{Message: "is empty", Offset: -1}
	}
	type outcome struct {
		result Result
		err    error
	}
	vm := goja.New()
	done := make(chan outcome, 1)
	go func() {
		s := &evaluation{vm: vm, g: g, text: text}
		var o outcome
		defer func() {
			if v := recover(); v != nil {
				o.result, o.err = Result{}, s.panicked(v)
			}
			done <- o
		}()
		o.result, o.err = s.eval(text, give)
	}()
	w := newWatch()
	defer w.stop()
	for reason := (*Error)(nil); reason == nil; {
		select {
		case o := <-done:
			return o.result, o.err
		case <-w.tick():
			if reason = w.exceeded(); reason != nil {
				vm.Interrupt(reason)
			}
		}
	}
	last := time.NewTimer(MaxTime)
	defer last.Stop()
	select {
	case o := <-done:
		return o.result, o.err
	case <-last.C:
		return Result{}, errTime
	}
}

var (
	errTime   = &Error{Message: fmt.Sprintf("did not end within %d ms", MaxTime.Milliseconds()), Offset: -1}
	errMemory = &Error{Message: "took too much memory", Offset: -1}
)

// evaluation is one expression under way.
type evaluation struct {
	vm      *goja.Runtime
	g       *Globals
	text    string
	fromEnv bool
	denied  *Error // an access that is a fault even if the expression would catch it
}

func (s *evaluation) eval(text string, give func(goja.Value) (Result, error)) (Result, error) {
	program, err := goja.Compile("", text, true)
	if err != nil {
		return Result{}, syntax(text, err)
	}
	s.vm.SetMaxCallStackSize(maxStack)
	if err := s.install(text); err != nil {
		return Result{}, &Error{Message: "cannot be prepared", Offset: -1}
	}
	var r Result
	v, err := s.vm.RunProgram(program)
	if err == nil {
		if thrown := s.vm.Try(func() { r, err = give(v) }); thrown != nil {
			err = thrown
		}
	}
	if s.denied != nil {
		return Result{}, s.denied
	}
	if err != nil {
		return Result{}, s.failed(err)
	}
	r.FromEnv = s.fromEnv
	return r, nil
}

// failed translates what the engine says. The text of a thrown error is left out when it may hold a variable's value.
func (s *evaluation) failed(err error) error {
	var own *Error
	var interrupted *goja.InterruptedError
	var thrown *goja.Exception
	var overflow *goja.StackOverflowError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &interrupted):
		if own, ok := interrupted.Value().(*Error); ok {
			return own
		}
		return errTime
	case errors.As(err, &overflow):
		return &Error{Message: "recurses too deep", Offset: -1}
	case errors.As(err, &thrown):
		return s.thrown(thrown)
	}
	return &Error{Message: "failed", Offset: -1}
}

func (s *evaluation) thrown(e *goja.Exception) error {
	name, message := "a value that is no error", ""
	if o, ok := e.Value().(*goja.Object); ok {
		if c := property(o, "name"); c != "" {
			name, message = c, property(o, "message")
		}
	}
	if undefined, ok := strings.CutSuffix(message, " is not defined"); ok && name == "ReferenceError" && !strings.Contains(undefined, " ") {
		return s.missing(undefined)
	}
	if s.fromEnv && !builtinError[name] {
		name = "an error"
	}
	if s.fromEnv {
		return &Error{Message: "threw " + name, Hint: "what it says is left out, as it may hold the value of a variable", Offset: -1}
	}
	if message == "" {
		return &Error{Message: "threw " + name, Offset: -1}
	}
	return &Error{Message: fmt.Sprintf("threw %s: %s", name, clip(message)), Offset: -1}
}

const known = "known are process.platform, .arch, .env, .cwd(), .pid, .execPath, and dshHomePath(...)"

var builtinError = map[string]bool{
	"Error": true, "EvalError": true, "RangeError": true, "ReferenceError": true, "SyntaxError": true, "TypeError": true,
	"URIError": true, "AggregateError": true,
}

// property reads a string property, whatever its getter does.
func property(o *goja.Object, name string) (text string) {
	defer func() { _ = recover() }()
	if v := o.Get(name); v != nil && !goja.IsUndefined(v) {
		return v.String()
	}
	return ""
}

func (s *evaluation) panicked(v any) error {
	if s.denied != nil {
		return s.denied
	}
	if err, ok := v.(error); ok {
		return s.failed(err)
	}
	return &Error{Message: "failed", Offset: -1}
}

// syntax translates a compile error, which the engine gives as text with a line and a column.
func syntax(text string, err error) *Error {
	e := &Error{Message: "is not JavaScript", Offset: -1}
	first, _, _ := strings.Cut(err.Error(), "\n")
	_, placed, _ := strings.Cut(first, "Line ")
	place, reason, _ := strings.Cut(placed, " ")
	reason, _, _ = strings.Cut(reason, " (and ")
	var line, column int
	if n, _ := fmt.Sscanf(place, "%d:%d", &line, &column); n != 2 || reason == "" {
		return e
	}
	e.Message += ": " + strings.ToLower(reason[:1]) + clip(reason[1:])
	for offset := range strings.SplitSeq(text, "\n") {
		if line--; line == 0 {
			e.Offset = min(column-1, len(offset)) + strings.Index(text, offset)
		}
	}
	return e
}

// clip keeps a message on one short line.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "..."
	}
	return s
}
