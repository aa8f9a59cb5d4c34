package compose

import (
	"errors"
	"strings"
	"unicode/utf8"

	"dsh/internal/diag"
	"dsh/internal/jsexpr"
	"dsh/internal/source"
)

// machine is a Machine as expressions see it.
type machine struct {
	Machine
	globals jsexpr.Globals
	shapes  shapes
}

func newMachine(m Machine) *machine {
	return &machine{Machine: m, shapes: shapes{}, globals: jsexpr.Globals{
		Platform: m.Platform, Arch: m.Arch, Env: m.Env, Dir: m.Dir, PID: m.PID, ExecPath: m.ExecPath, Home: m.Home,
	}}
}

func (m *machine) truthy(text string) (bool, error) { return jsexpr.Truthy(text, &m.globals) }

// eval returns n with every expression in it replaced by its value, or nil where that is undefined. Faulty expressions
// are left as they are.
func (m *machine) eval(n *source.Node, row string, faults *collector) *source.Node {
	switch n.Kind {
	case source.Expr:
		r, err := jsexpr.Eval(n.Raw, &m.globals)
		if err != nil {
			faults.add(expressionFault(n, row, err))
			return n
		}
		if r.Undefined {
			return nil
		}
		return source.Of(r.Value, n.Place, r.FromEnv)
	case source.List:
		out := *n
		out.Items = make([]*source.Node, len(n.Items))
		for i, item := range n.Items {
			if out.Items[i] = m.eval(item, row, faults); out.Items[i] == nil {
				out.Items[i] = source.Of(nil, item.Place, false)
			}
		}
		return &out
	case source.Map:
		out := *n
		out.Fields = make([]source.Field, 0, len(n.Fields))
		for _, f := range n.Fields {
			if v := m.eval(f.Value, row, faults); v != nil {
				out.Fields = append(out.Fields, source.Field{Key: f.Key, Place: f.Place, Value: v})
			}
		}
		return &out
	}
	return n
}

// expressionFault places what went wrong in an expression at the wrong part of it, if that can be found in the line.
func expressionFault(n *source.Node, row string, err error) *diag.Diagnostic {
	d := &diag.Diagnostic{Place: n.Place, Row: row, Slug: "expression", Message: err.Error()}
	var e *jsexpr.Error
	if !errors.As(err, &e) {
		return d
	}
	d.Hint = e.Hint
	offset, width := e.Offset, 1
	if e.Token != "" {
		offset, width = strings.Index(n.Raw, e.Token), utf8.RuneCountInString(e.Token)
	}
	if offset < 0 || n.Place.Line == 0 {
		return d
	}
	lines := strings.Split(strings.TrimPrefix(n.Place.Text, "\ufeff"), "\n")
	line := lines[n.Place.Line-1]
	if at := strings.Index(line, n.Raw); at >= 0 {
		d.Place.Column = utf8.RuneCountInString(line[:at+offset]) + 1
		d.Place.Width = width
	}
	return d
}
