package jsexpr

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// install puts the names of this package into the machine, and nothing that the text does not mention.
func (s *evaluation) install(text string) error {
	if err := s.vm.Set("process", s.vm.NewDynamicObject(&process{s: s})); err != nil {
		return err
	}
	if err := s.vm.Set("dshHomePath", s.homePath); err != nil {
		return err
	}
	return s.bound(text)
}

// homePath joins text onto the home directory, as path.join does.
func (s *evaluation) homePath(call goja.FunctionCall) goja.Value {
	segments := []string{s.g.Home}
	for _, arg := range call.Arguments {
		text, ok := arg.Export().(string)
		if !ok {
			panic(s.vm.NewTypeError("dshHomePath takes text"))
		}
		segments = append(segments, text)
	}
	if s.g.Platform == "win32" {
		return s.vm.ToValue(joinWindows(segments))
	}
	return s.vm.ToValue(join(segments))
}

func join(segments []string) string {
	joined := path.Join(segments...)
	if strings.HasSuffix(strings.Join(segments, ""), "/") && !strings.HasSuffix(joined, "/") {
		joined += "/"
	}
	return joined
}

// joinWindows is join for paths with backslashes, on any platform.
func joinWindows(segments []string) string {
	for i := range segments {
		segments[i] = strings.ReplaceAll(segments[i], `\`, "/")
	}
	volume := ""
	if home := segments[0]; len(home) > 1 && home[1] == ':' {
		volume, segments[0] = home[:2], home[2:]
	} else if strings.HasPrefix(home, "//") {
		volume, segments[0] = "/", home[1:]
	}
	return strings.ReplaceAll(volume+join(segments), "/", `\`)
}

// missing is a name that does not exist, which is printed only if it is one that the expression spells out.
func (s *evaluation) missing(name string) *Error {
	if s.fromEnv && !strings.Contains(s.text, name) {
		return &Error{Message: "uses a name that does not exist here", Hint: known, Offset: -1}
	}
	return &Error{Message: fmt.Sprintf("uses %s, which does not exist here", clip(name)), Hint: known, Token: name, Offset: -1}
}

// members are those of process.
var members = []string{"platform", "arch", "env", "pid", "execPath", "cwd"}

// inherited are those that every object has; they are no unknown members.
var inherited = []string{
	"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
	"__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "toJSON",
}

// process is the object of that name. Asking for a member that it has not is a fault: a patch that uses one would
// otherwise go on with undefined.
type process struct {
	s   *evaluation
	env goja.Value
	cwd goja.Value
}

func (p *process) Get(key string) goja.Value {
	g, vm := p.s.g, p.s.vm
	switch key {
	case "platform":
		return vm.ToValue(g.Platform)
	case "arch":
		return vm.ToValue(g.Arch)
	case "pid":
		return vm.ToValue(g.PID)
	case "execPath":
		return vm.ToValue(g.ExecPath)
	case "cwd":
		if p.cwd == nil {
			p.cwd = vm.ToValue(func(goja.FunctionCall) goja.Value { return vm.ToValue(g.Dir) })
		}
		return p.cwd
	case "env":
		if p.env == nil {
			p.env = vm.NewDynamicObject(&environment{s: p.s})
		}
		return p.env
	}
	if slices.Contains(inherited, key) {
		return nil
	}
	if p.s.denied == nil {
		p.s.denied = p.s.missing("process." + key)
	}
	panic(vm.NewTypeError("process.%s does not exist here", key))
}

func (p *process) Has(key string) bool         { return slices.Contains(members, key) }
func (p *process) Keys() []string              { return members }
func (p *process) Set(string, goja.Value) bool { return false }
func (p *process) Delete(key string) bool      { return !p.Has(key) }

// environment is process.env.
type environment struct{ s *evaluation }

func (e *environment) lookup(key string) (string, bool) {
	g := e.s.g
	if v, ok := g.Env[key]; ok {
		return v, true
	}
	if g.Platform == "win32" {
		for name, v := range g.Env {
			if strings.EqualFold(name, key) {
				return v, true
			}
		}
	}
	return "", false
}

func (e *environment) Get(key string) goja.Value {
	v, ok := e.lookup(key)
	if !ok {
		return nil
	}
	e.s.fromEnv = true
	return e.s.vm.ToValue(v)
}

func (e *environment) Has(key string) bool { _, ok := e.lookup(key); return ok }

func (e *environment) Keys() []string {
	names := make([]string, 0, len(e.s.g.Env))
	for name := range e.s.g.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (e *environment) Set(string, goja.Value) bool { return false }
func (e *environment) Delete(key string) bool      { return !e.Has(key) }
