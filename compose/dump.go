package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"dsh/internal/source"
)

// DumpOptions says how rows are printed.
type DumpOptions struct {
	Origins bool // add `# file:line` to each field
}

// YAML prints the rows as a patch that inserts them all; each run of rows from one layer is preceded by a comment that
// names the layer, its file and the layers that changed these rows. Rows with a fault in their text are left out.
func (r *Rows) YAML(o DumpOptions) ([]byte, error) {
	var w source.Writer
	if o.Origins {
		w.Comment = func(f source.Field) string {
			if f.Place.Line == 0 {
				return strings.Join(strings.Fields(f.Place.File), " ")
			}
			return fmt.Sprintf("%s:%d", f.Place.File, f.Place.Line)
		}
	}
	head := ""
	for _, row := range r.roots {
		if row.unreadable() {
			continue
		}
		if h := r.heading(row); h != head {
			if head != "" {
				w.WriteString("\n")
			}
			w.WriteString("# " + h + "\n- insert:\n")
			head = h
		}
		w.WriteString("    ")
		w.Item(row.node(), 4)
	}
	if head == "" {
		w.WriteString("[]\n")
	}
	return w.Bytes(), nil
}

// heading names the layer of a row, and those that changed it or a row in it.
func (r *Rows) heading(row *folded) string {
	l := r.layers[row.layer]
	h := "== " + l.Name
	if l.File != l.Name {
		h += " (" + l.File + ")"
	}
	changed := map[int]bool{}
	var visit func(*folded)
	visit = func(row *folded) {
		for _, i := range row.patched {
			changed[i] = true
		}
		for _, child := range row.children {
			visit(child)
		}
	}
	visit(row)
	word := ", patched by "
	for i, l := range r.layers {
		if changed[i] {
			h += word + l.Name
			word = ", "
		}
	}
	return strings.ReplaceAll(h, "\n", " ")
}

// JSON prints the rows as a list. An expression stands as {"__jsExpr": "..."}.
func (r *Rows) JSON() ([]byte, error) {
	list := &source.Node{Kind: source.List}
	for _, row := range r.roots {
		if !row.unreadable() {
			list.Items = append(list.Items, row.node())
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, list.JSON(), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// unreadable reports whether a value in the row's own text is a fault.
func (r *folded) unreadable() bool {
	for _, f := range r.fields {
		if len(f.value.Faults()) > 0 && (f.key != "config" || !r.group) {
			return true
		}
	}
	return false
}

// node returns the row as it could be written: what is in a group stands in the group's config.
func (r *folded) node() *source.Node {
	n := &source.Node{Kind: source.Map, Place: r.place}
	if r.field("id") == nil {
		n.Fields = append(n.Fields, source.Field{Key: "id", Place: r.place, Value: &source.Node{Kind: source.Text, Raw: r.id, Value: r.id}})
	}
	for _, f := range r.fields {
		if f.key == "config" && r.group {
			continue
		}
		n.Fields = append(n.Fields, source.Field{Key: f.key, Place: f.place, Value: f.value})
	}
	if r.group {
		rows := source.Field{Key: "config", Place: r.place, Value: &source.Node{Kind: source.List, Place: r.place}}
		if f := r.field("config"); f != nil {
			rows.Place = f.place
		}
		for _, child := range r.children {
			if !child.unreadable() {
				rows.Value.Items = append(rows.Value.Items, child.node())
			}
		}
		n.Fields = append(n.Fields, rows)
	}
	return n
}
