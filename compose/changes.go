package compose

import (
	"maps"
	"slices"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

// LayerChanges is what one layer does to the rows that those before it left.
type LayerChanges struct {
	Name, File string // of the layer
	Rows       []RowChange
}

// RowChange is what becomes of one row.
type RowChange struct {
	ID     string
	Module string // as the row names it; empty for a group
	Kind   ChangeKind
	Fields []FieldChange
}

// ChangeKind says what happened to a row.
type ChangeKind string

// The kinds of changes.
const (
	Inserted ChangeKind = "inserted"
	Changed  ChangeKind = "changed"
	Removed  ChangeKind = "removed" // with the config of its group
)

// FieldChange is one value before and after, as it is written: nothing in it has been evaluated.
type FieldChange struct {
	Path     string     // disabled, config.timeoutMs, ...
	Old, New string     // as JSON, an expression as `!!js TEXT`; empty: there is none
	Place    diag.Place // of the key that says so; of a value that has gone, nowhere
}

// Changes returns what each layer changes, in order. It takes no step behind the fold. A non-nil error is a *Faults.
func Changes(layers []Layer, reg *module.Registry, o FoldOptions) ([]LayerChanges, error) {
	o.SameModule = sameModule(reg)
	if _, err := Fold(layers, o); err != nil {
		return nil, err
	}
	changes := make([]LayerChanges, len(layers))
	before := &Rows{}
	for i, l := range layers {
		after := fold(layers[:i+1], o).rows
		changes[i] = LayerChanges{Name: l.Name, File: l.File, Rows: compareRows(before, after)}
		before = after
	}
	return changes, nil
}

// compareRows returns the rows that differ, those that have gone at the end.
func compareRows(before, after *Rows) (changes []RowChange) {
	after.each(func(r *folded) {
		c := RowChange{ID: r.id, Module: r.name(), Kind: Changed}
		old := before.byID[r.id]
		if old == nil {
			c.Kind = Inserted
		}
		c.Fields = compareFields(old, r)
		if c.Kind == Inserted || len(c.Fields) > 0 {
			changes = append(changes, c)
		}
	})
	before.each(func(r *folded) {
		if after.byID[r.id] == nil {
			changes = append(changes, RowChange{ID: r.id, Module: r.name(), Kind: Removed})
		}
	})
	return changes
}

// compareFields compares what is written in two rows, value by value. Either may be nil.
func compareFields(before, after *folded) (changes []FieldChange) {
	olds, _ := before.written()
	news, order := after.written()
	for _, path := range order {
		f := news[path]
		if old := olds[path]; old.text != f.text {
			changes = append(changes, FieldChange{Path: path, Old: old.text, New: f.text, Place: f.place})
		}
		delete(olds, path)
	}
	for _, path := range slices.Sorted(maps.Keys(olds)) {
		changes = append(changes, FieldChange{Path: path, Old: olds[path].text})
	}
	return changes
}

type written struct {
	text  string
	place diag.Place
}

// written returns the values of a row by their paths, and the paths in the order of the text. A group's rows are no
// values of it.
func (r *folded) written() (values map[string]written, order []string) {
	values = map[string]written{}
	if r == nil {
		return values, nil
	}
	var add func(path string, n *source.Node, place diag.Place)
	add = func(path string, n *source.Node, place diag.Place) {
		if n.Kind == source.Map && len(n.Fields) > 0 {
			for _, f := range n.Fields {
				add(path+"."+f.Key, f.Value, f.Place)
			}
			return
		}
		values[path] = written{asWritten(n), place}
		order = append(order, path)
	}
	for _, f := range r.fields {
		if f.key != "id" && f.key != "name" && (f.key != "config" || !r.group) {
			add(f.key, f.value, f.place)
		}
	}
	return values, order
}

func asWritten(n *source.Node) string {
	if n.Kind == source.Expr {
		return "!!js " + n.Raw
	}
	return string(n.JSON())
}

// sameModule is the name guard by the names of a registry.
func sameModule(reg *module.Registry) func(a, b string) bool {
	return func(a, b string) bool {
		x, ok := reg.Lookup(a)
		y, both := reg.Lookup(b)
		return ok && both && x.Name() == y.Name()
	}
}
