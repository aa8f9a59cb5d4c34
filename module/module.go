package module

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"
)

// Unix lists the platforms of modules that need processes, signals and descriptors as Unix has them.
var Unix = []string{"linux", "darwin"}

// Spec is what a module states about itself. C is its configuration: a struct whose fields carry `koanf:"key"` and
// `doc:"..."` tags, and `values:"a,b"` where only these texts can work, which an editor then offers. If C has a method
// Validate() error, it is called on every decoded value and returns everything that cannot work, as FieldErrors joined
// with errors.Join.
type Spec[C any] struct {
	Name      string   // kebab-case
	Aliases   []string // other names that a row may use
	Summary   string   // one line: what it does
	Platforms []string // as process.platform calls them; empty: all
	Default   func() C

	// Constructor is func(Params) (Result, error) or any part of that: parameters and results are capabilities, or
	// structs that embed fx.In and fx.Out. C, *slog.Logger and Runner are not capabilities. It starts nothing, and only
	// keeps what it is given, which may not have started yet.
	Constructor any

	StartWithin, StopWithin time.Duration // 0: DefaultBudget
}

// Module is a defined module. It is immutable and may be shared.
type Module struct {
	name, summary           string
	aliases, platforms      []string
	config                  reflect.Type
	defaults                func() any
	constructor             reflect.Value
	provides                []reflect.Type
	needs                   []Need
	startWithin, stopWithin time.Duration
}

// Need is a capability that a module asks for.
type Need struct {
	Type     reflect.Type
	Optional bool // orders the start, and is nobody's fault when absent
}

// Define makes a module of s. It panics when s contradicts itself, which is a bug in the module that any test of it
// shows.
func Define[C any](s Spec[C]) Module {
	m := Module{
		name: s.Name, summary: s.Summary, aliases: slices.Clone(s.Aliases), platforms: slices.Clone(s.Platforms),
		config:      reflect.TypeFor[C](),
		constructor: reflect.ValueOf(s.Constructor),
		startWithin: budget(s.StartWithin), stopWithin: budget(s.StopWithin),
		defaults: func() any {
			var c C
			if s.Default != nil {
				c = s.Default()
			}
			return c
		},
	}
	if err := m.inspect(); err != nil {
		panic(fmt.Sprintf("module %q: %v", s.Name, err))
	}
	return m
}

// Name returns the name that rows use.
func (m Module) Name() string { return m.name }

// Aliases returns the other names that rows may use.
func (m Module) Aliases() []string { return slices.Clone(m.aliases) }

// Summary returns one line on what the module does.
func (m Module) Summary() string { return m.summary }

// Supports reports whether the module runs on platform, named as in process.platform.
func (m Module) Supports(platform string) bool {
	return len(m.platforms) == 0 || slices.Contains(m.platforms, platform)
}

// Platforms returns the platforms that the module runs on; empty means all.
func (m Module) Platforms() []string { return slices.Clone(m.platforms) }

// Provides returns the capabilities that a row of this module provides.
func (m Module) Provides() []reflect.Type { return slices.Clone(m.provides) }

// Needs returns the capabilities that a row of this module asks for.
func (m Module) Needs() []Need { return slices.Clone(m.needs) }

// ConfigType returns the struct type of the module's configuration.
func (m Module) ConfigType() reflect.Type { return m.config }

// DefaultConfig returns a fresh default configuration, of ConfigType.
func (m Module) DefaultConfig() any { return m.defaults() }

// StartWithin and StopWithin return the row's budgets.
func (m Module) StartWithin() time.Duration { return m.startWithin }

// StopWithin returns how long a row of this module may take to stop.
func (m Module) StopWithin() time.Duration { return m.stopWithin }

// FieldError is one setting that cannot work. Validate methods return them, joined.
type FieldError struct {
	Key    string // the path of keys, as a row's config spells it: "limits.memoryMax", "keepEnv[0]"
	Reason string // lower case: "must be positive, got 0"
	With   string // another setting that the reason is about; empty: none. A row may have set that one alone.
}

// Error returns the key and the reason.
func (e *FieldError) Error() string { return e.Key + " " + e.Reason }

// Field returns a FieldError with a formatted reason.
func Field(key, format string, args ...any) error {
	return &FieldError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

// FieldWith is Field for a setting that cannot work with another one.
func FieldWith(key, with, format string, args ...any) error {
	return &FieldError{Key: key, With: with, Reason: fmt.Sprintf(format, args...)}
}

// IsAbs reports whether path is absolute on this platform or on another one, since a configuration can be checked for
// another machine than this. Who uses the path has still to look with filepath.IsAbs.
func IsAbs(path string) bool {
	drive := len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	return filepath.IsAbs(path) || strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) || drive
}

// Validate returns what the configuration's own Validate method says of config, or nil without one.
func (m Module) Validate(config any) error {
	if v, ok := config.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Fx returns the module as a plain fx option, for a host with an fx app of its own: it provides what the module
// provides, and starts and stops it with the app. The app supplies what the module needs, and a *slog.Logger.
func Fx(m Module, config any) fx.Option {
	if got := reflect.TypeOf(config); got != m.config {
		return fx.Error(fmt.Errorf("module %q: config is a %v, want %v", m.name, got, m.config))
	}
	return fx.Module(m.name, fx.Supply(fx.Private, config), m.Options(Observer{}))
}

// Observer is what a composer wants to know of a row. Each function may be nil.
type Observer struct {
	// Supervise is given each Runner when it has been constructed, and what it returns is started and stopped in its
	// place. The Runner's functions contain panics, as a *PanicError.
	Supervise func(Runner) Runner

	// Provided is given the capabilities, in the order of Module.Provides, before any is started.
	Provided func([]reflect.Value)
}

// Options is Fx for a composer, which gives each row an app of its own: that app supplies the configuration too.
func (m Module) Options(o Observer) fx.Option {
	build := m.build(o.Supervise)
	if len(m.provides) == 0 {
		return fx.Invoke(build)
	}
	// A row is mounted for its effects too, so its capabilities are made even if nobody asks for them.
	demand := reflect.MakeFunc(reflect.FuncOf(m.provides, nil, false), func(values []reflect.Value) []reflect.Value {
		if o.Provided != nil {
			o.Provided(values)
		}
		return nil
	})
	return fx.Options(fx.Provide(build), fx.Invoke(demand.Interface()))
}

// build returns the constructor as fx sees it: the same parameters and an fx.Lifecycle, the capabilities alone as
// results. The Runner goes to the lifecycle, and a panic becomes an error.
func (m Module) build(supervise func(Runner) Runner) any {
	t := m.constructor.Type()
	in := []reflect.Type{reflect.TypeFor[fx.Lifecycle]()}
	for i := range t.NumIn() {
		in = append(in, t.In(i))
	}
	out := append(slices.Clone(m.provides), errorType)
	return reflect.MakeFunc(reflect.FuncOf(in, out, false), func(args []reflect.Value) (results []reflect.Value) {
		values, runners, err := m.construct(args[1:])
		if err == nil {
			for _, r := range runners {
				r = r.contained()
				if supervise != nil {
					r = supervise(r)
				}
				args[0].Interface().(fx.Lifecycle).Append(r.hook(m.startWithin, m.stopWithin))
			}
		}
		for _, typ := range m.provides {
			v, ok := values[typ]
			if !ok {
				v = reflect.Zero(typ)
			}
			results = append(results, v)
		}
		result := reflect.New(errorType).Elem()
		if err != nil {
			result.Set(reflect.ValueOf(&ConstructorError{Err: err}))
		}
		return append(results, result)
	}).Interface()
}

// ConstructorError is what a module's constructor failed with. It marks the cause within what fx says about it.
type ConstructorError struct{ Err error }

// Error returns the text of Err.
func (e *ConstructorError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConstructorError) Unwrap() error { return e.Err }

func (m Module) construct(args []reflect.Value) (values map[reflect.Type]reflect.Value, runners []Runner, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{During: "new", Value: v, Stack: debug.Stack()}
		}
	}()
	values = map[reflect.Type]reflect.Value{}
	results := m.constructor.Call(args)
	for _, r := range results { // with an error, the other results are empty
		if r.Type() == errorType && !r.IsNil() {
			return nil, nil, r.Interface().(error)
		}
	}
	for _, r := range results {
		if r.Type() == errorType {
			continue
		}
		for _, f := range parts(r) {
			if f.Type() == runnerType {
				runners = append(runners, f.Interface().(Runner))
				continue
			}
			if f.IsNil() {
				return nil, nil, fmt.Errorf("the constructor returned no %v", f.Type())
			}
			values[f.Type()] = f
		}
	}
	return values, runners, nil
}

var (
	errorType  = reflect.TypeFor[error]()
	runnerType = reflect.TypeFor[Runner]()
	loggerType = reflect.TypeFor[*slog.Logger]()
	fxIn       = reflect.TypeFor[fx.In]()
	fxOut      = reflect.TypeFor[fx.Out]()
)

// tagged refuses a configuration with a field that no row could set, as one without a tag is.
func tagged(config reflect.Type) error {
	for i := range config.NumField() {
		f := config.Field(i)
		tag := f.Tag.Get("koanf")
		if f.IsExported() && tag == "" {
			return fmt.Errorf("the field %s of its config has no tag `koanf:\"key\"`; one that no row may set has \"-\"", f.Name)
		}
		if f.Type.Kind() == reflect.Struct && strings.Contains(tag, "squash") {
			if err := tagged(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// inspect reads from the constructor's types what the module provides and needs.
func (m *Module) inspect() error {
	if m.name == "" || strings.ToLower(m.name) != m.name {
		return errors.New("a name is kebab-case")
	}
	if m.config.Kind() != reflect.Struct {
		return fmt.Errorf("config is a %v, want a struct", m.config)
	}
	if err := tagged(m.config); err != nil {
		return err
	}
	if !m.constructor.IsValid() || m.constructor.Kind() != reflect.Func || m.constructor.Type().IsVariadic() {
		return errors.New("the constructor is a function without variadic parameters")
	}
	t := m.constructor.Type()
	for i := range t.NumIn() {
		for _, f := range fields(t.In(i), fxIn) {
			if f.Type == m.config || f.Type == loggerType {
				continue
			}
			if err := capability(f); err != nil {
				return err
			}
			m.needs = append(m.needs, Need{Type: f.Type, Optional: f.Tag.Get("optional") == "true"})
		}
	}
	for i := range t.NumOut() {
		if t.Out(i) == errorType {
			continue
		}
		for _, f := range fields(t.Out(i), fxOut) {
			if f.Type == runnerType {
				continue
			}
			if err := capability(f); err != nil {
				return err
			}
			if slices.Contains(m.provides, f.Type) || slices.ContainsFunc(m.needs, func(n Need) bool { return n.Type == f.Type }) {
				return fmt.Errorf("%v is provided twice, or both needed and provided", f.Type)
			}
			m.provides = append(m.provides, f.Type)
		}
	}
	return nil
}

// capability refuses what the composer cannot order or name: anything but an interface, and fx's names and groups.
func capability(f reflect.StructField) error {
	if f.Type.Kind() != reflect.Interface {
		return fmt.Errorf("%v is not an interface; a capability is one", f.Type)
	}
	if f.Type == reflect.TypeFor[fx.Lifecycle]() || f.Type == reflect.TypeFor[fx.Shutdowner]() {
		return fmt.Errorf("%v belongs to the host; a module that starts or stops returns a Runner", f.Type)
	}
	if f.Tag.Get("name") != "" || f.Tag.Get("group") != "" {
		return fmt.Errorf("%v: fx names and value groups are not used between rows", f.Type)
	}
	return nil
}

// fields returns the fields of t when it embeds marker, and otherwise t itself as the one field.
func fields(t reflect.Type, marker reflect.Type) []reflect.StructField {
	if !embeds(t, marker) {
		return []reflect.StructField{{Type: t}}
	}
	var fs []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != marker {
			fs = append(fs, f)
		}
	}
	return fs
}

func embeds(t, marker reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type == marker {
			return true
		}
	}
	return false
}

// parts is fields for a result's value.
func parts(v reflect.Value) []reflect.Value {
	if !embeds(v.Type(), fxOut) {
		return []reflect.Value{v}
	}
	var fs []reflect.Value
	for i := range v.NumField() {
		if v.Type().Field(i).Type != fxOut {
			fs = append(fs, v.Field(i))
		}
	}
	return fs
}

func budget(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultBudget
	}
	return d
}
