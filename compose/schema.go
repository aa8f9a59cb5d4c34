package compose

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"dsh/module"
)

// Schema returns a JSON Schema (draft 7, which editors know) of a patch file over rows: what may be inserted, with the
// configuration of every module of reg, and what may be changed in each row. It knows less than a plan: what expressions
// give, and what rows need of each other, only a check tells.
//
// An expression is {"__jsExpr": TEXT}, as a dump prints it, or its bare text, as an editor sees the value of a tag. It is
// taken for one where text cannot stand if it calls, selects or computes something.
func Schema(rows *Rows, reg *module.Registry) ([]byte, error) {
	b := &schemas{rows: rows, reg: reg, definitions: map[string]*jsonschema.Schema{}}
	b.definitions["expression"] = expressionSchema()
	for _, m := range reg.Modules() {
		b.definitions[moduleDefinition(m)] = b.config(m)
	}
	b.definitions["row"] = b.row()
	b.definitions["insertion"] = b.insertion()
	b.definitions["change"] = b.change()
	text, err := json.MarshalIndent(&jsonschema.Schema{
		Schema: "http://json-schema.org/draft-07/schema#",
		Title:  "a patch file of dsh",
		Types:  []string{"array", "null"},
		Items: &jsonschema.Schema{
			Type: "object",
			If:   &jsonschema.Schema{Required: []string{"insert"}},
			Then: reference("insertion"),
			Else: reference("change"),
		},
		Definitions: b.definitions,
	}, "", "  ")
	return append(text, '\n'), err
}

// schemas builds the parts. Alternatives are told apart by `if`, not tried in turn, so that what is wrong with one is
// reported of that one and at its place.
type schemas struct {
	rows        *Rows
	reg         *module.Registry
	definitions map[string]*jsonschema.Schema
}

func reference(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/definitions/" + name}
}

func moduleDefinition(m module.Module) string { return "config of " + m.Name() }

func expressionSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{
			Type: "object", Required: []string{"__jsExpr"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Properties: map[string]*jsonschema.Schema{"__jsExpr": {Type: "string"}},
		},
		{Type: "string", Pattern: `process\.|[()?*+%/=!<>|&]`},
	}}
}

// orExpression returns s, or an expression in its place.
func orExpression(s *jsonschema.Schema) *jsonschema.Schema {
	out := &jsonschema.Schema{Description: s.Description, Default: s.Default}
	s.Description, s.Default = "", nil
	out.If, out.Then, out.Else = reference("expression"), &jsonschema.Schema{}, s
	return out
}

// config is the schema of a module's `config`.
func (b *schemas) config(m module.Module) *jsonschema.Schema {
	s := b.of(m.ConfigType(), m, reflect.ValueOf(m.DefaultConfig()), "", nil)
	s.Description = m.Summary()
	s.Else.Type, s.Else.Types = "", []string{"object", "null"}
	return s
}

// of is the schema of a value of type t. Def is its default, without one the zero Value; path and index lead to it in
// the configuration of m.
func (b *schemas) of(t reflect.Type, m module.Module, def reflect.Value, path string, index []int) *jsonschema.Schema {
	var none reflect.Value
	switch {
	case textual(t):
		return orExpression(&jsonschema.Schema{Type: "string"})
	case t.Kind() == reflect.Interface:
		return &jsonschema.Schema{}
	case t.Kind() == reflect.Pointer:
		s := b.of(t.Elem(), m, none, path, nil)
		if s.Else != nil && s.Else.Type != "" {
			s.Else.Types, s.Else.Type = []string{s.Else.Type, "null"}, ""
		}
		return s
	case t.Kind() == reflect.Map:
		return orExpression(&jsonschema.Schema{Type: "object", AdditionalProperties: b.of(t.Elem(), m, none, path, nil)})
	case t.Kind() == reflect.Slice:
		return orExpression(&jsonschema.Schema{Type: "array", Items: b.of(t.Elem(), m, none, path, nil)})
	case t.Kind() == reflect.Struct:
		s := &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		}
		for _, f := range configFields(t) {
			at, inner := slices.Concat(index, f.index), none
			if def.IsValid() {
				inner = def.FieldByIndex(f.index)
			} else {
				at = nil
			}
			field := b.of(f.typ, m, inner, path+f.key+".", at)
			field.Description = f.doc
			if inner.IsValid() {
				field.Default = json.RawMessage(defaultText(inner))
			}
			s.PropertyOrder = append(s.PropertyOrder, f.key)
			s.Properties[f.key] = field
			if field.Else == nil {
				continue
			}
			for _, v := range f.values {
				field.Else.Enum = append(field.Else.Enum, v)
			}
			if field.Else.Type == "integer" && len(at) > 0 {
				field.Else.Minimum = least(m, path+f.key, at, field.Else.Minimum)
			}
		}
		return orExpression(s)
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return &jsonschema.Schema{} // no config holds one
	}
	return orExpression(s)
}

// least returns 0 or 1 if the module refuses whatever is below that, and otherwise what its type says.
func least(m module.Module, key string, index []int, known *float64) *float64 {
	refused := func(value int64) bool {
		config := reflect.New(m.ConfigType()).Elem()
		config.Set(reflect.ValueOf(m.DefaultConfig()))
		field := config.FieldByIndex(index)
		if !field.CanInt() || field.OverflowInt(value) {
			return false
		}
		field.SetInt(value)
		return slices.ContainsFunc(flatten(m.Validate(config.Interface())), func(err error) bool {
			f := fieldError(err)
			return f != nil && f.Key == key
		})
	}
	for _, bound := range []int64{0, 1} {
		if refused(bound-1) && !refused(bound) {
			return jsonschema.Ptr(float64(bound))
		}
	}
	return known
}

// row is a row under `insert`.
func (b *schemas) row() *jsonschema.Schema {
	var names []any
	var branches []*jsonschema.Schema
	for _, m := range b.reg.Modules() {
		own := moduleNames(m)
		names = append(names, own...)
		branches = append(branches, when("name", own, property("config", reference(moduleDefinition(m)))))
	}
	s := b.fields()
	s.Properties["id"] = &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1), Description: "what other patches call the row"}
	s.Properties["name"] = &jsonschema.Schema{Type: "string", Description: "the module that the row mounts"}
	s.If = isGroup()
	s.Then = property("config", b.children())
	s.Else = property("name", &jsonschema.Schema{Enum: names})
	s.Else.Required = []string{"name"}
	s.Else.AllOf = branches
	return s
}

func (b *schemas) insertion() *jsonschema.Schema {
	return &jsonschema.Schema{
		Properties: map[string]*jsonschema.Schema{
			"insert":   {Type: "array", Items: reference("row"), Description: "rows to add at the end, or at the end of the group `id`"},
			"id":       {Type: "string", Description: "the group to add to"},
			"optional": optionalSchema(),
		},
	}
}

// change is an entry that changes a row: one that there is, or with a name or `optional` one that may be.
func (b *schemas) change() *jsonschema.Schema {
	s := b.fields()
	s.Required = []string{"id"}
	s.Properties["id"] = &jsonschema.Schema{Type: "string", Description: "the row to change"}
	s.Properties["name"] = &jsonschema.Schema{Type: "string", Description: "a guard: the entry is an error if the row's module is another"}
	s.Properties["optional"] = optionalSchema()

	ids := []any{}
	var branches []*jsonschema.Schema
	b.rows.each(func(r *folded) {
		ids = append(ids, r.id)
		m, known := b.reg.Lookup(r.name())
		switch {
		case r.group:
			branches = append(branches, when("id", []any{r.id}, property("config", b.children())))
		case known:
			then := property("config", reference(moduleDefinition(m)))
			then.Properties["name"] = &jsonschema.Schema{Enum: moduleNames(m)}
			branches = append(branches, when("id", []any{r.id}, then))
		}
	})
	guarded := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Required: []string{"name"}}, {Required: []string{"optional"}}}}
	branches = append(branches, &jsonschema.Schema{If: guarded, Then: &jsonschema.Schema{}, Else: property("id", &jsonschema.Schema{Enum: ids})})
	for _, m := range b.reg.Modules() {
		branches = append(branches, when("name", moduleNames(m), property("config", reference(moduleDefinition(m)))))
	}
	s.AllOf = branches
	return s
}

// fields are the keys that entries and rows have in common.
func (b *schemas) fields() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:                 "object",
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		PropertyOrder:        []string{"id", "name", "disabled", "config"},
		Properties: map[string]*jsonschema.Schema{
			"disabled":  orExpression(&jsonschema.Schema{Type: "boolean", Description: "whether the row is left out"}),
			"config":    {Description: "the module's settings; what is left out has its default"},
			"group":     {Type: "boolean", Description: "whether config is a list of rows"},
			"inject":    {Description: "accepted and ignored"},
			"isolate":   {Description: "accepted and ignored"},
			"intercept": {Description: "accepted and ignored"},
		},
	}
}

// children is the config of a group.
func (b *schemas) children() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"array", "null"}, Items: reference("row")}
}

func optionalSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: "whether it is no error if no row has this id"}
}

func isGroup() *jsonschema.Schema {
	s := property("group", &jsonschema.Schema{Enum: []any{true}})
	s.Required = []string{"group"}
	return s
}

// when applies then to what has one of values as its key.
func when(key string, values []any, then *jsonschema.Schema) *jsonschema.Schema {
	s := property(key, &jsonschema.Schema{Enum: values})
	s.Required = []string{key}
	return &jsonschema.Schema{If: s, Then: then}
}

func property(key string, s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{key: s}}
}

func moduleNames(m module.Module) []any {
	names := []any{m.Name()}
	for _, alias := range m.Aliases() {
		names = append(names, alias)
	}
	return names
}
