package compose

import (
	"encoding/json"
	"reflect"

	"dsh/internal/diag"
	"dsh/internal/source"
)

// Setting is one key of a row's configuration, as people read it.
type Setting struct {
	Key     string     // the path of keys, joined by dots
	Type    string     // "text", "an integer", "a list", ...
	Doc     string     // what it is for
	Value   string     // as JSON; `(from the environment)` instead of what a variable holds; `!!js ...` where it was not evaluated
	Default string     // the module's, as JSON
	Layer   string     // the name of the layer that gave the value; empty: it is the default
	Place   diag.Place // of the key in that layer
}

// Settings explains the configuration of the row with this id, field by field, in the order of the module's struct. It is
// false without such a row.
func (p *Plan) Settings(id string) ([]Setting, bool) {
	e, ok := p.explained[id]
	if !ok {
		return nil, false
	}
	x := explainer{layers: p.rows.layers}
	x.fields(e.config, e.module.ConfigType(), reflect.ValueOf(e.module.DefaultConfig()), "")
	return x.settings, true
}

type explainer struct {
	layers   []Layer
	settings []Setting
}

func (x *explainer) fields(n *source.Node, t reflect.Type, defaults reflect.Value, path string) {
	for _, f := range configFields(t) {
		def := defaults.FieldByIndex(f.index)
		field := n.Field(f.key)
		if f.typ.Kind() == reflect.Struct && !textual(f.typ) && (field == nil || field.Value.Kind == source.Map) {
			var inner *source.Node
			if field != nil {
				inner = field.Value
			}
			x.fields(inner, f.typ, def, path+f.key+".")
			continue
		}
		s := Setting{Key: path + f.key, Type: typeName(f.typ), Doc: f.doc, Default: defaultText(def)}
		s.Value = s.Default
		if field != nil {
			s.Place, s.Layer = field.Place, x.layer(field.Place.File)
			s.Value = show(field.Value)
		}
		x.settings = append(x.settings, s)
	}
}

func (x *explainer) layer(file string) string {
	for _, l := range x.layers {
		if l.File == file {
			return l.Name
		}
	}
	return setFile
}

// show prints a value without what variables hold.
func show(n *source.Node) string {
	secret, computed := false, false
	n.Walk(func(n *source.Node) bool {
		secret = secret || n.FromEnv
		computed = computed || n.Kind == source.Expr
		return true
	})
	switch {
	case secret:
		return "(from the environment)"
	case n.Kind == source.Expr:
		return "!!js " + n.Raw
	case computed:
		return "(not evaluated)"
	}
	return string(n.JSON())
}

// defaultText prints a module's default.
func defaultText(v reflect.Value) string {
	value := shapes{}.plain(v)
	if textual(v.Type()) {
		value = v.Interface()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// typeName says what a setting takes, in the words of the faults.
func typeName(t reflect.Type) string {
	if textual(t) {
		return "text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Interface:
		return "any value"
	}
	return "an integer"
}
