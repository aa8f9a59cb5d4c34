package compose

import (
	"reflect"
	"slices"

	"dsh/internal/diag"
	"dsh/module"
)

// Graph is the rows of a plan and what flows between them.
type Graph struct {
	Rows  []RowInfo // in the order in which they start, then those that are disabled
	Edges []Edge    // in the order of the rows that need
}

// Edge is a capability that one enabled row takes from another.
type Edge struct {
	From       string // the row that provides
	To         string // the row that needs
	Capability string // as people call it, such as `shell (shell.Executor)`
	Optional   bool
}

// RowInfo is a row as people read it.
type RowInfo struct {
	ID          string
	Module      module.Module
	Layer       string   // that inserted it
	Patched     []string // layers that changed it
	Place       diag.Place
	Disabled    bool
	Reason      string     // the expression that disabled it; empty for a literal
	ReasonPlace diag.Place // of what disabled it
}

// Graph returns the plan's rows with what flows between them.
func (p *Plan) Graph() Graph {
	var g Graph
	for _, m := range p.mounts {
		g.Rows = append(g.Rows, p.info(RowInfo{ID: m.ID, Module: m.Module, Place: m.Place}))
		for _, n := range m.Module.Needs() {
			for _, from := range p.mounts {
				if slices.Contains(from.Module.Provides(), n.Type) {
					g.Edges = append(g.Edges, Edge{From: from.ID, To: m.ID, Capability: p.registry.Word(n.Type), Optional: n.Optional})
				}
			}
		}
	}
	for _, d := range p.disabled {
		g.Rows = append(g.Rows, p.info(RowInfo{
			ID: d.ID, Module: d.Module, Place: d.Place, Disabled: true, Reason: d.Reason, ReasonPlace: d.ReasonPlace,
		}))
	}
	return g
}

// Row returns the row with this id. It is false without one, and for a group.
func (p *Plan) Row(id string) (RowInfo, bool) {
	rows := p.Graph().Rows
	i := slices.IndexFunc(rows, func(r RowInfo) bool { return r.ID == id })
	if i < 0 {
		return RowInfo{}, false
	}
	return rows[i], true
}

// info adds what the layers know of a row.
func (p *Plan) info(i RowInfo) RowInfo {
	row := p.rows.byID[i.ID]
	i.Layer = p.rows.layers[row.layer].Name
	for _, l := range row.patched {
		i.Patched = append(i.Patched, p.rows.layers[l].Name)
	}
	return i
}

// Word returns how people call a capability, as in an Edge.
func (p *Plan) Word(capability reflect.Type) string { return p.registry.Word(capability) }
