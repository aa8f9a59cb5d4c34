package module_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"dsh/module"
	"dsh/module/key"
)

type (
	reader interface{ Read() string }
	writer interface{ Write(string) }
	closer interface{ Close() }
)

type file struct{ name string }

func (f file) Read() string { return f.name }
func (file) Write(string)   {}
func (file) Close()         {}

type config struct {
	Name  string   `koanf:"name"`
	Size  int      `koanf:"size"`
	Parts []string `koanf:"parts"`
}

func (c config) Validate() error {
	if c.Size < 0 {
		return module.Field("size", "must not be negative, got %d", c.Size)
	}
	return nil
}

type params struct {
	fx.In
	Config config
	Log    *slog.Logger
	Writer writer
	Closer closer `optional:"true"`
}

type result struct {
	fx.Out
	Reader reader
	Run    module.Runner
}

func spec(constructor any) module.Spec[config] {
	return module.Spec[config]{
		Name: "a-file", Aliases: []string{"@upstream/file"}, Summary: "reads a file", Platforms: module.Unix,
		Default: func() config { return config{Name: "default"} }, Constructor: constructor,
		StartWithin: time.Second, StopWithin: 2 * time.Second,
	}
}

func TestDefineReadsTheConstructor(t *testing.T) {
	t.Parallel()
	R, W, C := reflect.TypeFor[reader](), reflect.TypeFor[writer](), reflect.TypeFor[closer]()
	for name, c := range map[string]struct {
		constructor any
		provides    []reflect.Type
		needs       []module.Need
	}{
		"nothing at all":          {constructor: func() {}},
		"configuration alone":     {constructor: func(config) {}},
		"an error alone":          {constructor: func() error { return nil }},
		"a runner alone":          {constructor: func(*slog.Logger) module.Runner { return module.Runner{} }},
		"plain types":             {constructor: func(writer, config) (reader, closer, error) { return nil, nil, nil }, provides: []reflect.Type{R, C}, needs: []module.Need{{Type: W}}},
		"a struct on either side": {constructor: func(params) (result, error) { return result{}, nil }, provides: []reflect.Type{R}, needs: []module.Need{{Type: W}, {Type: C, Optional: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := module.Define(spec(c.constructor))
			if got := m.Provides(); !slices.Equal(got, c.provides) {
				t.Errorf("provides %v, want %v", got, c.provides)
			}
			if got := m.Needs(); !slices.Equal(got, c.needs) {
				t.Errorf("needs %v, want %v", got, c.needs)
			}
		})
	}
}

func TestDefineKeepsTheSpec(t *testing.T) {
	t.Parallel()
	m := module.Define(spec(func() {}))
	if m.Name() != "a-file" || m.Summary() != "reads a file" || !slices.Equal(m.Aliases(), []string{"@upstream/file"}) {
		t.Errorf("got %q, %q, %q", m.Name(), m.Summary(), m.Aliases())
	}
	if !m.Supports("linux") || !m.Supports("darwin") || m.Supports("win32") {
		t.Errorf("the platforms are %v", m.Platforms())
	}
	if m.StartWithin() != time.Second || m.StopWithin() != 2*time.Second {
		t.Errorf("the budgets are %v and %v", m.StartWithin(), m.StopWithin())
	}
	if m.ConfigType() != reflect.TypeFor[config]() || !reflect.DeepEqual(m.DefaultConfig(), config{Name: "default"}) {
		t.Errorf("the configuration is %v, %+v", m.ConfigType(), m.DefaultConfig())
	}

	bare := module.Define(module.Spec[config]{Name: "bare", Constructor: func() {}})
	if bare.StartWithin() != module.DefaultBudget || bare.StopWithin() != module.DefaultBudget {
		t.Errorf("the budgets of a spec without are %v and %v", bare.StartWithin(), bare.StopWithin())
	}
	if !bare.Supports("win32") || !reflect.DeepEqual(bare.DefaultConfig(), config{}) {
		t.Errorf("a spec without: platforms %v, default %+v", bare.Platforms(), bare.DefaultConfig())
	}
}

func TestWhatAModuleHandsOutCannotChangeIt(t *testing.T) {
	t.Parallel()
	m := module.Define(spec(func(writer) reader { return nil }))
	m.Aliases()[0], m.Platforms()[0] = "changed", "changed"
	m.Provides()[0], m.Needs()[0] = nil, module.Need{}
	if m.Aliases()[0] == "changed" || m.Platforms()[0] == "changed" || m.Provides()[0] == nil || m.Needs()[0].Type == nil {
		t.Error("a caller changed the module")
	}
}

func TestDefineRefusesASpecThatContradictsItself(t *testing.T) {
	t.Parallel()
	type named struct {
		fx.In
		W writer `name:"left"`
	}
	type grouped struct {
		fx.Out
		R reader `group:"readers"`
	}
	for name, c := range map[string]struct {
		define func()
		says   string
	}{
		"no name":                        {func() { module.Define(module.Spec[config]{Constructor: func() {}}) }, "kebab-case"},
		"a name in camel case":           {func() { module.Define(module.Spec[config]{Name: "aFile", Constructor: func() {}}) }, "kebab-case"},
		"a configuration that is no map": {func() { module.Define(module.Spec[int]{Name: "x", Constructor: func() {}}) }, "config is a int, want a struct"},
		"a setting without a key": {func() {
			module.Define(module.Spec[struct{ MaxBytes int }]{Name: "x", Constructor: func() {}})
		}, "the field MaxBytes of its config has no tag"},
		"a setting without a key, squashed": {func() {
			module.Define(module.Spec[struct {
				Inner struct{ MaxBytes int } `koanf:",squash"`
			}]{Name: "x", Constructor: func() {}})
		}, "the field MaxBytes of its config has no tag"},
		"no constructor":                {func() { module.Define(spec(nil)) }, "the constructor is a function"},
		"a constructor that is none":    {func() { module.Define(spec(3)) }, "the constructor is a function"},
		"variadic parameters":           {func() { module.Define(spec(func(...writer) {})) }, "variadic"},
		"a need that is no interface":   {func() { module.Define(spec(func(file) {})) }, "module_test.file is not an interface"},
		"a result that is no interface": {func() { module.Define(spec(func() *file { return nil })) }, "*module_test.file is not an interface"},
		"a named value":                 {func() { module.Define(spec(func(named) {})) }, "names and value groups"},
		"a value group":                 {func() { module.Define(spec(func() grouped { return grouped{} })) }, "names and value groups"},
		"the same thing twice":          {func() { module.Define(spec(func() (reader, reader) { return nil, nil })) }, "module_test.reader is provided twice"},
		"a thing needed and provided":   {func() { module.Define(spec(func(reader) reader { return nil })) }, "both needed and provided"},
		"the host's lifecycle":          {func() { module.Define(spec(func(fx.Lifecycle) {})) }, "belongs to the host"},
		"the host's end":                {func() { module.Define(spec(func(fx.Shutdowner) {})) }, "belongs to the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				got, _ := recover().(string)
				if !strings.HasPrefix(got, "module ") || !strings.Contains(got, c.says) {
					t.Errorf("got the panic %q, want one about %q", got, c.says)
				}
			}()
			c.define()
		})
	}
}

func TestValidateAsksTheConfiguration(t *testing.T) {
	t.Parallel()
	m := module.Define(spec(func() {}))
	if err := m.Validate(config{}); err != nil {
		t.Errorf("got %v for one that works", err)
	}
	f, ok := errors.AsType[*module.FieldError](m.Validate(config{Size: -1}))
	if !ok || f.Key != "size" || f.Error() != "size must not be negative, got -1" {
		t.Errorf("got %v", f)
	}
	type silent struct{}
	if err := module.Define(module.Spec[silent]{Name: "silent", Constructor: func() {}}).Validate(silent{}); err != nil {
		t.Errorf("got %v from a configuration without Validate", err)
	}
}

func TestFxMountsAModuleInAnAppOfTheHost(t *testing.T) {
	t.Parallel()
	var did []string
	m := module.Define(spec(func(p params) (result, error) {
		p.Log.Debug("made")
		if p.Closer != nil {
			t.Error("an optional need came from nowhere")
		}
		did = append(did, "new "+p.Config.Name)
		return result{Reader: file{name: p.Config.Name}, Run: module.Runner{
			Start: func(context.Context) error { did = append(did, "start"); return nil },
			Stop:  func(context.Context) error { did = append(did, "stop"); return nil },
		}}, nil
	}))
	var r reader
	app := fxtest.New(t, fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)), fx.Provide(func() writer { return file{} }),
		module.Fx(m, config{Name: "mine"}), fx.Populate(&r))
	app.RequireStart()
	if r == nil || r.Read() != "mine" {
		t.Errorf("got %v", r)
	}
	app.RequireStop()
	if d := cmp.Diff([]string{"new mine", "start", "stop"}, did); d != "" {
		t.Errorf("(want -, got +):\n%s", d)
	}
}

func TestAModuleThatNobodyAsksForIsMadeAllTheSame(t *testing.T) {
	t.Parallel()
	for name, constructor := range map[string]func(made *bool) any{
		"for its effects":      func(made *bool) any { return func() { *made = true } },
		"for what it provides": func(made *bool) any { return func() reader { *made = true; return file{} } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := false
			app := fx.New(fx.NopLogger, module.Fx(module.Define(spec(constructor(&made))), config{}))
			if err := app.Err(); err != nil || !made {
				t.Errorf("made: %v, error: %v", made, err)
			}
		})
	}
}

func TestAConfigurationIsPrivateToItsModule(t *testing.T) {
	t.Parallel()
	var got []string
	see := func(name string) module.Module {
		return module.Define(module.Spec[config]{Name: name, Constructor: func(c config) { got = append(got, c.Name) }})
	}
	app := fx.New(fx.NopLogger, module.Fx(see("one"), config{Name: "1"}), module.Fx(see("two"), config{Name: "2"}))
	if err := app.Err(); err != nil || !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFxReportsWhatAConstructorFailedWith(t *testing.T) {
	t.Parallel()
	cause := errors.New("no disk")
	for name, c := range map[string]struct {
		constructor any
		config      any
		says        string
	}{
		"an error":                     {func() (reader, error) { return nil, cause }, config{}, "no disk"},
		"an error for effects alone":   {func() error { return cause }, config{}, "no disk"},
		"a panic":                      {func() reader { panic("oh no") }, config{}, "panic during new: oh no"},
		"nothing where a thing is due": {func() reader { return nil }, config{}, "the constructor returned no module_test.reader"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fx.New(fx.NopLogger, module.Fx(module.Define(spec(c.constructor)), c.config)).Err()
			ce, ok := errors.AsType[*module.ConstructorError](err)
			if !ok || ce.Error() != c.says {
				t.Fatalf("got %v", err)
			}
			if strings.HasPrefix(name, "an error") && !errors.Is(err, cause) {
				t.Error("the cause is lost")
			}
			if p, ok := errors.AsType[*module.PanicError](err); (name == "a panic") != ok || ok && (p.During != "new" || len(p.Stack) == 0) {
				t.Errorf("got the panic %+v", p)
			}
		})
	}
	t.Run("a configuration of another module", func(t *testing.T) {
		t.Parallel()
		err := fx.New(fx.NopLogger, module.Fx(module.Define(spec(func() {})), struct{}{})).Err()
		if err == nil || !strings.Contains(err.Error(), `module "a-file": config is a struct {}, want module_test.config`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHooksContainPanicsAndKeepBudgets(t *testing.T) {
	t.Parallel()
	type key struct{}
	var startBy, stopBy time.Duration
	var stopErr error
	left := func(ctx context.Context) time.Duration {
		deadline, _ := ctx.Deadline()
		return time.Until(deadline)
	}
	m := module.Define(spec(func() module.Runner {
		return module.Runner{
			Start: func(ctx context.Context) error { startBy = left(ctx); return nil },
			Stop: func(ctx context.Context) error {
				stopBy, stopErr = left(ctx), ctx.Err()
				if ctx.Value(key{}) != "kept" {
					t.Error("the values of the context are lost")
				}
				panic("stuck")
			},
		}
	}))
	var lifecycle fx.Lifecycle
	app := fx.New(fx.NopLogger, module.Fx(m, config{}), fx.Populate(&lifecycle))
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	lifecycle.Append(fx.Hook{OnStart: func(context.Context) error { return nil }, OnStop: func(context.Context) error { return nil }})
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	err := app.Stop(ctx)
	cancel()
	p, ok := errors.AsType[*module.PanicError](err)
	if !ok || p.During != "stop" || p.Value != "stuck" || !strings.Contains(string(p.Stack), "module_test") {
		t.Errorf("got %v", err)
	}
	if startBy <= 0 || startBy > time.Second || stopBy <= 0 || stopBy > 2*time.Second || stopErr != nil {
		t.Errorf("a start had %v, a stop %v and %v", startBy, stopBy, stopErr)
	}
}

func TestAStopGoesOnWhenItsHostGivesUp(t *testing.T) {
	t.Parallel()
	ctx, giveUp := context.WithCancel(t.Context())
	seen := make(chan error, 1)
	app := fx.New(fx.NopLogger, module.Fx(module.Define(spec(func() module.Runner {
		return module.Runner{Stop: func(ctx context.Context) error {
			giveUp()
			seen <- ctx.Err()
			return nil
		}}
	})), config{}))
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_ = app.Stop(ctx) // reports the host's own end
	if err := <-seen; err != nil {
		t.Errorf("the stop was given up with its host: %v", err)
	}
}

func TestOptionsLetAHostSupervise(t *testing.T) {
	t.Parallel()
	var did []string
	m := module.Define(spec(func() (reader, module.Runner) {
		return file{}, module.Runner{
			Start: func(context.Context) error { did = append(did, "start"); panic("out of luck") },
			Stop:  func(context.Context) error { did = append(did, "stop"); return nil },
			Kill:  func() { did = append(did, "kill"); panic("out of luck") },
		}
	}))
	var seen []module.Runner
	var provided []reflect.Value
	app := fx.New(fx.NopLogger, fx.Supply(config{}), m.Options(module.Observer{
		Supervise: func(r module.Runner) module.Runner {
			seen = append(seen, r)
			return module.Runner{
				Start: func(ctx context.Context) error {
					if err := r.Start(ctx); err == nil {
						t.Error("the panic is neither contained nor told")
					}
					did = append(did, "supervised")
					return nil
				},
			}
		},
		Provided: func(values []reflect.Value) { provided = values },
	}))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 {
		t.Fatalf("was given %d runners, want 1", len(seen))
	}
	if len(provided) != 1 || provided[0].Type() != reflect.TypeFor[reader]() || provided[0].Interface() != (file{}) {
		t.Errorf("was given the capabilities %v", provided)
	}
	seen[0].Kill()
	if d := cmp.Diff([]string{"start", "supervised", "kill"}, did); d != "" {
		t.Errorf("(want -, got +):\n%s", d)
	}
}

func TestRegistryFindsModulesByNameAndAlias(t *testing.T) {
	t.Parallel()
	one := module.Define(spec(func() {}))
	two := module.Define(module.Spec[config]{Name: "two", Constructor: func() {}})
	r, err := module.NewRegistry(
		module.Bundle{Name: "base", Modules: []module.Module{one}, Capabilities: []key.Key{key.Of[reader]("reading")}},
		module.Bundle{Name: "more", Modules: []module.Module{two}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a-file": "a-file", "@upstream/file": "a-file", "two": "two", "three": ""} {
		if m, ok := r.Lookup(name); m.Name() != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, m.Name(), ok, want)
		}
	}
	if ms := r.Modules(); len(ms) != 2 || ms[0].Name() != "a-file" || ms[1].Name() != "two" {
		t.Errorf("got %d modules", len(ms))
	}
	if got := r.Word(reflect.TypeFor[reader]()); got != "reading (module_test.reader)" {
		t.Errorf("got %q", got)
	}
	if got := r.Word(reflect.TypeFor[writer]()); got != "module_test.writer" {
		t.Errorf("got %q", got)
	}
}

func TestRegistryRefusesTwoModulesWithOneName(t *testing.T) {
	t.Parallel()
	one := module.Define(spec(func() {}))
	two := module.Define(module.Spec[config]{Name: "two", Aliases: []string{"a-file"}, Constructor: func() {}})
	_, err := module.NewRegistry(module.Bundle{Name: "base", Modules: []module.Module{one}}, module.Bundle{Name: "more", Modules: []module.Module{two}})
	if err == nil || err.Error() != `bundle "more": modules "a-file" and "two" are both called "a-file"` {
		t.Errorf("got %v", err)
	}
}

func TestRegisteringTakesBack(t *testing.T) {
	refused := errors.New("taken")
	for name, c := range map[string]struct {
		last      module.Registration
		err       error
		panics    bool
		afterward []string // before the stop
	}{
		"all are made": {func() (func(), error) { return func() {}, nil }, nil, false, []string{"+a", "+b"}},
		"one refused":  {func() (func(), error) { return nil, refused }, refused, false, []string{"+a", "+b", "-b", "-a"}},
		"one panics":   {func() (func(), error) { panic("broken") }, nil, true, []string{"+a", "+b", "-b", "-a"}},
	} {
		var did []string
		add := func(name string) module.Registration {
			return func() (func(), error) {
				did = append(did, "+"+name)
				return func() { did = append(did, "-"+name) }, nil
			}
		}
		r := module.Registering(add("a"), add("b"), c.last)
		var err error
		panicked := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			err = r.Start(t.Context())
			return false
		}()
		if err != c.err || panicked != c.panics || !slices.Equal(did, c.afterward) {
			t.Errorf("%s: error %v, panic %v, %q", name, err, panicked, did)
		}
		if err == nil && !panicked {
			if err := r.Stop(t.Context()); err != nil || !slices.Equal(did, []string{"+a", "+b", "-b", "-a"}) {
				t.Errorf("%s: after the stop %q, %v", name, did, err)
			}
		}
	}
}
