package compose

import (
	"fmt"
	"slices"
	"strings"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

// Rows is what layers fold into: every row, with the origin of every field.
type Rows struct {
	layers   []Layer
	roots    []*folded
	byID     map[string]*folded
	skipped  []*diag.Diagnostic
	repeated []*diag.Diagnostic // rows that repeat an id, where the fold let them
}

// folded is one row as the layers left it.
type folded struct {
	id       string
	place    diag.Place // of the id
	fields   []rowField // as written, id and name among them
	layer    int        // that inserted it
	patched  []int      // layers that changed it
	parent   *folded
	group    bool
	children []*folded
	broken   bool         // it has a fault, so later steps leave it out
	flags    []diag.Place // of the flags that set something in its config
}

// rowField is one key of a row, with the layer that gave it.
type rowField struct {
	key   string
	place diag.Place // of the key
	value *source.Node
	layer int
}

// Skipped returns a diagnostic for each entry that was left out because its id or name matched no row, which
// FoldOptions.AllowUnknownIDs allows. What says itself that it is optional is not among them.
func (r *Rows) Skipped() []*diag.Diagnostic { return slices.Clone(r.skipped) }

// IDs returns the ids of all rows, in order, those in groups after their group.
func (r *Rows) IDs() []string { return r.ids() }

func (r *Rows) ids() []string {
	var ids []string
	r.each(func(row *folded) { ids = append(ids, row.id) })
	return ids
}

// each visits every row, a group before what is in it.
func (r *Rows) each(f func(*folded)) {
	var visit func([]*folded)
	visit = func(rows []*folded) {
		for _, row := range rows {
			f(row)
			visit(row.children)
		}
	}
	visit(r.roots)
}

func (r *folded) field(key string) *rowField {
	for i := range r.fields {
		if r.fields[i].key == key {
			return &r.fields[i]
		}
	}
	return nil
}

func (r *folded) replace(field rowField) {
	if old := r.field(field.key); old != nil {
		*old = field
		return
	}
	r.fields = append(r.fields, field)
}

// touch notes that a layer changed the row.
func (r *folded) touch(layer int) {
	if layer != r.layer && !slices.Contains(r.patched, layer) {
		r.patched = append(r.patched, layer)
	}
}

// mounting returns what made the row an enabled one, where and in which layer: its insertion, or the `disabled` of a later
// layer that says that it is not.
func (r *folded) mounting() mounting {
	if f := r.field("disabled"); f != nil && f.layer > r.layer {
		return mounting{place: f.value.Place, layer: f.layer, word: "enabled"}
	}
	return mounting{place: r.place, layer: r.layer, word: "inserted"}
}

type mounting struct {
	place diag.Place
	layer int
	word  string
}

// name returns the module name as written, or "" without a readable one.
func (r *folded) name() string {
	if f := r.field("name"); f != nil && f.value.Kind == source.Text {
		return f.value.Raw
	}
	return ""
}

// rowKeys are the keys that a row can have.
var rowKeys = []string{"id", "name", "disabled", "config", "group", "inject", "isolate", "intercept"}

// judged is a row after its own keys were looked at.
type judged struct {
	*folded
	module   module.Module
	known    bool      // module is the row's, or guessed
	guessed  bool      // module is what a name that is nobody's comes nearest to
	disabled *rowField // nil: enabled; else the field, here or in a group around it, that disabled it
}

// judge looks at the keys of every row, finds its module and evaluates `disabled`. Groups are gone after this step.
func judge(rows *Rows, reg *module.Registry, m *machine, faults *collector) []judged {
	var out []judged
	var visit func(rows []*folded, around *rowField)
	visit = func(rows []*folded, around *rowField) {
		for _, r := range rows {
			r.keys(faults)
			j := judged{folded: r, disabled: around}
			if around == nil {
				j.disabled = r.off(m, faults)
			}
			if r.group {
				if c := r.field("config"); c != nil && c.value.Kind != source.List && c.value.Kind != source.Null {
					faults.fault(c.value.Place, r.id, "row-type", "the config of a group is a list of rows, got "+got(c.value), "")
				}
				visit(r.children, j.disabled)
				continue
			}
			j.find(reg, faults)
			if j.known && j.disabled == nil && !j.module.Supports(m.Platform) {
				r.broken = true
				faults.fault(r.mounting().place, r.id, "platform", fmt.Sprintf("module %q does not run on %s", j.module.Name(), m.Platform),
					fmt.Sprintf("give the row `disabled: !!js process.platform === '%s'`", m.Platform))
			}
			out = append(out, j)
		}
	}
	visit(rows.roots, nil)
	return out
}

// keys checks the names and the types of a row's keys, and that expressions stand only where they can.
func (r *folded) keys(faults *collector) {
	for _, f := range r.fields {
		if !slices.Contains(rowKeys, f.key) {
			r.broken = true
			hint := few("a row can have", rowKeys)
			if near := diag.Nearest(f.key, rowKeys); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			faults.fault(f.place, r.id, "row-key", fmt.Sprintf("unknown row key %q", f.key), hint)
			continue
		}
		if f.key != "disabled" && f.key != "config" {
			f.value.Walk(func(n *source.Node) bool {
				if n.Kind == source.Expr {
					r.broken = true
					faults.fault(n.Place, r.id, "expression-place", fmt.Sprintf("%s cannot be an expression", f.key), "only `disabled` and values inside `config` can")
				}
				return true
			})
		}
		want, hint := "", ""
		switch {
		case f.value.Kind == source.Expr || f.value.Kind == source.Fault:
		case f.key == "name" && (f.value.Kind != source.Text || f.value.Raw == ""):
			want, hint = "text", quoteHint(f.value)
		case (f.key == "disabled" || f.key == "group") && f.value.Kind != source.Bool:
			want, hint = "true or false", boolHint(f.value)
		}
		if want != "" {
			r.broken = true
			faults.fault(f.value.Place, r.id, "row-type", fmt.Sprintf("%s must be %s, got %s", f.key, want, got(f.value)), hint)
		}
	}
	if r.field("name") == nil && !r.group {
		r.broken = true
		faults.fault(r.place, r.id, "no-name", "the row names no module", "give it a `name:`")
	}
}

// off returns the field that disables the row, or nil.
func (r *folded) off(m *machine, faults *collector) *rowField {
	f := r.field("disabled")
	switch {
	case f == nil:
		return nil
	case f.value.Kind == source.Bool:
		if f.value.Value.(bool) {
			return f
		}
	case f.value.Kind == source.Expr:
		disabled, err := m.truthy(f.value.Raw)
		if err != nil {
			r.broken = true
			faults.add(expressionFault(f.value, r.id, err))
		}
		if disabled {
			return f
		}
	}
	return nil
}

// find looks the module's name up.
func (j *judged) find(reg *module.Registry, faults *collector) {
	f := j.field("name")
	if f == nil || f.value.Kind != source.Text || f.value.Raw == "" {
		return
	}
	if j.module, j.known = reg.Lookup(f.value.Raw); j.known {
		return
	}
	j.broken = true
	var names []string
	for _, m := range reg.Modules() {
		names = append(append(names, m.Name()), m.Aliases()...)
	}
	hint := "`dsh modules` lists what is compiled in"
	if near := diag.Nearest(f.value.Raw, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
		// What a misspelt row would provide is not missed as well.
		j.module, j.known = reg.Lookup(near)
		j.guessed = true
	}
	faults.fault(f.value.Place, j.id, "unknown-module", fmt.Sprintf("no module is called %q", f.value.Raw), hint)
}

// got is a value in a message.
func got(n *source.Node) string {
	switch {
	case n.Kind == source.Text && n.FromEnv:
		return "text"
	case n.Kind == source.Text:
		s := n.Raw
		if r := []rune(s); len(r) > 40 {
			s = string(r[:40]) + "..."
		}
		return fmt.Sprintf("%q", s)
	case n.FromEnv:
		return n.Kind.String()
	case n.Kind == source.Bool || n.Kind == source.Int || n.Kind == source.Float:
		return n.Raw
	}
	return n.Kind.String()
}

func quoteHint(n *source.Node) string {
	if n.Kind == source.Int || n.Kind == source.Float || n.Kind == source.Bool {
		return fmt.Sprintf("quote it: '%s'", n.Raw)
	}
	return ""
}

// expressionHint knows an expression that was written as text.
func expressionHint(n *source.Node) string {
	if n.Kind == source.Text && (strings.HasPrefix(n.Raw, "process.") || strings.HasPrefix(n.Raw, "dshHomePath(")) {
		return "for an expression, write !!js in front of it"
	}
	return ""
}

// boolHint knows what people write for true and false.
func boolHint(n *source.Node) string {
	if n.Kind == source.Text {
		switch strings.ToLower(n.Raw) {
		case "yes", "on", "true", "y":
			return "write true"
		case "no", "off", "false", "n":
			return "write false"
		}
		return expressionHint(n)
	}
	return ""
}
