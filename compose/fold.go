package compose

import (
	"fmt"
	"hash/fnv"
	"strings"

	"dsh/internal/diag"
	"dsh/internal/source"
)

// FoldOptions says how strict a fold is.
type FoldOptions struct {
	// AllowUnknownIDs folds as upstream does: it skips entries whose id or name matches no row, and keeps rows that
	// repeat an id, of which later entries change the last. A plan cannot be made of such rows all the same.
	AllowUnknownIDs bool

	// SameModule reports whether two names mean one module, for the name guard. Nil: only equal names do. MakePlan uses
	// its registry instead.
	SameModule func(a, b string) bool
}

// Fold applies the layers in order. The rows are never nil: with a fault, they are what could be folded. A non-nil error
// is a *Faults.
func Fold(layers []Layer, o FoldOptions) (*Rows, error) {
	f := fold(layers, o)
	return f.rows, f.faults.err(layers)
}

// folder is a fold under way.
type folder struct {
	rows    *Rows
	options FoldOptions
	faults  collector
	layer   int
	blind   bool // a layer could not be read, so that an unknown id may be one of its rows
}

func fold(layers []Layer, o FoldOptions) *folder {
	f := &folder{rows: &Rows{layers: layers, byID: map[string]*folded{}}, options: o}
	for i, l := range layers {
		f.layer = i
		f.faults.add(l.faults...)
		for k, e := range l.entries {
			f.entry(k+1, e)
		}
		for _, s := range l.sets {
			f.set(s)
		}
		f.blind = f.blind || len(l.faults) > 0 && l.File != setFile
	}
	return f
}

func (f *folder) entry(number int, e *source.Node) {
	switch {
	case e.Kind == source.Fault:
		f.faults.add(e.Fault)
	case e.Kind != source.Map:
		f.faults.fault(e.Place, "", "entry", fmt.Sprintf("entry %d is %s, not a mapping", number, e.Kind), "an entry is `- id: ROW` with what to change, or `- insert:` with rows")
	case e.Field("insert") != nil:
		f.insert(e)
	case e.Field("id") == nil:
		if faults := e.Faults(); len(faults) > 0 {
			f.faults.add(faults...)
			return
		}
		f.faults.fault(e.Place, "", "entry", fmt.Sprintf("entry %d has neither id nor insert", number), "say with `id:` which row it changes, or put new rows under `insert:`")
	default:
		f.change(e)
	}
}

// insert adds rows at the end, or at the end of a group.
func (f *folder) insert(e *source.Node) {
	list := e.Field("insert")
	var group *folded
	if e.Field("id") != nil {
		var ok bool
		if group, ok = f.target(e); !ok {
			return
		}
		if !group.group {
			f.faults.fault(e.Get("id").Place, group.id, "not-a-group", "rows can only be inserted into a group", "leave the id out to insert at the end, or give the row `group: true`")
			return
		}
	}
	if list.Value.Kind == source.Fault {
		f.faults.add(list.Value.Fault)
		return
	}
	if list.Value.Kind != source.List {
		f.faults.fault(list.Place, "", "entry", "insert takes a list of rows, and this is "+list.Value.Kind.String(), "start every row with `- id:`")
		return
	}
	rows := f.build(list.Value.Items, group)
	if group == nil {
		f.rows.roots = append(f.rows.roots, rows...)
		return
	}
	group.children = append(group.children, rows...)
	group.touch(f.layer)
}

// build makes rows of nodes and makes them known by their ids.
func (f *folder) build(nodes []*source.Node, parent *folded) []*folded {
	var rows []*folded
	for _, n := range nodes {
		if r := f.row(n, parent); r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

func (f *folder) row(n *source.Node, parent *folded) *folded {
	faults := n.Faults()
	f.faults.add(faults...)
	if n.Kind != source.Map {
		if len(faults) == 0 {
			f.faults.fault(n.Place, "", "entry", "a row is a mapping, and this is "+n.Kind.String(), "write `id:` and `name:`")
		}
		return nil
	}
	r := &folded{place: n.Place, layer: f.layer, parent: parent, broken: len(faults) > 0}
	switch id := n.Field("id"); {
	case id == nil:
		// Upstream makes one up as well; this one stays the same from run to run.
		h := fnv.New32a()
		fmt.Fprintf(h, "%s:%d:%d", n.Place.File, n.Place.Line, n.Place.Column)
		r.id = fmt.Sprintf("%08x", h.Sum32())
	case id.Value.Kind == source.Fault:
		return nil
	case id.Value.Kind != source.Text || id.Value.Raw == "":
		f.faults.fault(id.Value.Place, "", "row-type", "id must be text, got "+got(id.Value), quoteHint(id.Value))
		return nil
	default:
		r.id, r.place = id.Value.Raw, id.Value.Place
	}
	if first := f.rows.byID[r.id]; first != nil {
		d := &diag.Diagnostic{
			Place: r.place, Slug: "duplicate-id", Message: fmt.Sprintf("the id %q is taken", r.id),
			Hint: fmt.Sprintf("%s has it first; to change that row, leave out `insert:`", first.place),
		}
		if !f.options.AllowUnknownIDs {
			f.faults.add(d)
			return nil
		}
		f.rows.repeated = append(f.rows.repeated, d)
	}
	f.rows.byID[r.id] = r
	for _, field := range n.Fields {
		r.fields = append(r.fields, rowField{key: field.Key, place: field.Place, value: field.Value, layer: f.layer})
	}
	f.regroup(r)
	return r
}

// regroup makes the children of a row that is a group, after its group or config changed.
func (f *folder) regroup(r *folded) {
	f.forget(r.children)
	r.children, r.group = nil, false
	if g := r.field("group"); g == nil || g.value.Kind != source.Bool || !g.value.Value.(bool) {
		return
	}
	r.group = true
	if c := r.field("config"); c != nil && c.value.Kind == source.List {
		r.children = f.build(c.value.Items, r)
	}
}

func (f *folder) forget(rows []*folded) {
	for _, r := range rows {
		f.forget(r.children)
		if f.rows.byID[r.id] == r {
			delete(f.rows.byID, r.id)
		}
	}
}

// change replaces fields of a row.
func (f *folder) change(e *source.Node) {
	faults := e.Faults()
	f.faults.add(faults...)
	r, ok := f.target(e)
	if !ok || len(faults) > 0 {
		return
	}
	if name := e.Field("name"); name != nil && !f.guard(r, name.Value) {
		return
	}
	regroup := false
	for _, field := range e.Fields {
		switch field.Key {
		case "id", "name", "optional":
			continue
		case "group", "config":
			regroup = true
		}
		r.replace(rowField{key: field.Key, place: field.Place, value: field.Value, layer: f.layer})
	}
	r.touch(f.layer)
	if regroup {
		f.regroup(r)
	}
}

// target returns the row that an entry is for.
func (f *folder) target(e *source.Node) (*folded, bool) {
	id := e.Get("id")
	if id.Kind == source.Fault {
		return nil, false
	}
	if id.Kind != source.Text {
		f.faults.fault(id.Place, "", "row-type", "id must be text, got "+got(id), quoteHint(id))
		return nil, false
	}
	optional := e.Get("optional")
	if optional != nil && optional.Kind == source.Fault {
		return nil, false
	}
	if optional != nil && optional.Kind != source.Bool {
		f.faults.fault(optional.Place, id.Raw, "row-type", "optional must be true or false, got "+got(optional), boolHint(optional))
		return nil, false
	}
	if r := f.rows.byID[id.Raw]; r != nil {
		return r, true
	}
	d := &diag.Diagnostic{Place: id.Place, Slug: "unknown-id", Message: fmt.Sprintf("no row has the id %q", id.Raw), Hint: f.nearRow(id.Raw)}
	switch {
	case optional != nil && optional.Value.(bool):
	case f.options.AllowUnknownIDs:
		f.rows.skipped = append(f.rows.skipped, d)
	case !f.blind:
		f.faults.add(d)
	}
	return nil, false
}

// guard compares the name in a change entry with the row's.
func (f *folder) guard(r *folded, name *source.Node) bool {
	own := r.name()
	if name.Kind == source.Text && (name.Raw == own || f.options.SameModule != nil && f.options.SameModule(name.Raw, own)) {
		return true
	}
	d := &diag.Diagnostic{
		Place: name.Place, Row: r.id, Slug: "name-mismatch",
		Message: fmt.Sprintf("its module is %q, not %s", own, got(name)),
		Hint:    "a name here only guards; to swap the module, disable this row and insert another",
	}
	if f.options.AllowUnknownIDs {
		f.rows.skipped = append(f.rows.skipped, d)
	} else {
		f.faults.add(d)
	}
	return false
}

// set puts one value into a row's config.
func (f *folder) set(s set) {
	r, path := f.aim(s.target)
	if r == nil {
		id := s.target[0]
		d := &diag.Diagnostic{Place: s.place, Slug: "unknown-id", Message: fmt.Sprintf("no row has the id %q", id), Hint: f.nearRow(id)}
		switch {
		case f.options.AllowUnknownIDs:
			f.rows.skipped = append(f.rows.skipped, d)
		case !f.blind:
			f.faults.add(d)
		}
		return
	}
	config := r.field("config")
	var old *source.Node
	if config != nil {
		old = config.value
	}
	if r.group {
		f.faults.fault(s.place, r.id, "set", "a group has no settings", "name a row in it")
		return
	}
	value := old.With(path, s.place, s.value)
	if value == nil {
		f.faults.fault(s.place, r.id, "set", stuck(old, path), "set the whole of that, or give the row's config with --patch")
		return
	}
	field := rowField{key: "config", place: s.place, value: value, layer: f.layer}
	if config != nil {
		field.place, field.layer = config.place, config.layer
	}
	r.replace(field)
	r.touch(f.layer)
	r.flags = append(r.flags, s.place)
}

// aim splits what a set is for: of the ids that it may begin with, the longest is meant.
func (f *folder) aim(target []string) (*folded, []string) {
	for i := len(target) - 1; i > 0; i-- {
		if r := f.rows.byID[strings.Join(target[:i], ".")]; r != nil {
			return r, target[i:]
		}
	}
	return nil, nil
}

// stuck says where a path leads into what is no mapping.
func stuck(n *source.Node, path []string) string {
	name := "config"
	for i, key := range path {
		if n.Kind != source.Map {
			break
		}
		n, name = n.Get(key), strings.Join(path[:i+1], ".")
	}
	return fmt.Sprintf("%s is %s, which has no keys", name, n.Kind)
}

// nearRow says which row was probably meant, or which there are.
func (f *folder) nearRow(id string) string {
	ids := f.rows.ids()
	near := diag.Nearest(id, ids)
	if near == "" {
		return few("the rows are", ids)
	}
	return fmt.Sprintf("did you mean %q, from %s?", near, f.rows.layers[f.rows.byID[near].layer].Name)
}

// few lists names, as many as one can read.
func few(what string, names []string) string {
	const most = 24
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s %s and %d more", what, strings.Join(names[:most], ", "), more)
	}
	return what + " " + strings.Join(names, ", ")
}
