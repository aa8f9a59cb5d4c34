package compose

import (
	"slices"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

// Plan is a composition that has been checked and not started: every enabled row with its module and its decoded
// configuration, in the order in which rows start. It is immutable and may be applied more than once.
type Plan struct {
	mounts   []Mount
	disabled []disabledRow
	rows     *Rows
	registry *module.Registry

	explained map[string]explained
}

// explained is what a plan keeps of a row so that it can say where each setting comes from.
type explained struct {
	module module.Module
	config *source.Node // evaluated, if the row is enabled; nil without one
}

// Mount is an enabled row of a plan.
type Mount struct {
	ID     string
	Module module.Module
	Config any        // of Module.ConfigType, decoded and valid
	Place  diag.Place // of the row's id, where it was inserted

	mounting mounting
	node     *source.Node // of the config, evaluated; nil without one
}

// disabledRow is a row that is not mounted, kept because it may be what another row misses.
type disabledRow struct {
	ID          string
	Module      module.Module
	Place       diag.Place // of the row's id, where it was inserted
	Reason      string     // the text of the expression that disabled it; empty for a literal
	ReasonPlace diag.Place // of the value of `disabled`, in this row or in the group around it
}

// Mounts returns the rows in the order in which they start.
func (p *Plan) Mounts() []Mount { return slices.Clone(p.mounts) }

// Rows returns the rows that the plan was made of, disabled ones included.
func (p *Plan) Rows() *Rows { return p.rows }

// MakePlan folds layers and takes every later step towards a plan for the machine m. It starts nothing. A non-nil error
// is a *Faults that holds the faults of all steps, those of Load included.
func MakePlan(layers []Layer, reg *module.Registry, m Machine, o FoldOptions) (*Plan, error) {
	o.SameModule = sameModule(reg)
	f := fold(layers, o)
	faults := &f.faults
	faults.add(f.rows.repeated...)
	on := newMachine(m)
	p := &Plan{rows: f.rows, registry: reg, explained: map[string]explained{}}
	var broken, guessed []diag.Place
	for _, j := range judge(f.rows, reg, on, faults) {
		if !j.known {
			continue
		}
		var config any
		if j.guessed {
			guessed = append(guessed, j.place)
		} else {
			var node *source.Node
			config, node = j.settings(on, faults)
			p.explained[j.id] = explained{module: j.module, config: node}
		}
		if d := j.disabled; d != nil {
			j.unread(faults)
			off := disabledRow{ID: j.id, Module: j.module, Place: j.place, ReasonPlace: d.value.Place}
			if d.value.Kind == source.Expr {
				off.Reason = d.value.Raw
			}
			p.disabled = append(p.disabled, off)
			continue
		}
		if j.broken {
			broken = append(broken, j.place)
		}
		p.mounts = append(p.mounts, Mount{ID: j.id, Module: j.module, Config: config, Place: j.place, mounting: j.mounting(), node: p.explained[j.id].config})
	}
	p.link(faults, f.blind, broken, guessed)
	if err := faults.err(layers); err != nil {
		return nil, err
	}
	return p, nil
}

// link orders the mounts. A fault that only follows from another one is left out: a row that is broken still provides
// what others need, but is no second provider and part of no cycle; and when a layer could not be read, what is missing
// may be in it.
func (p *Plan) link(faults *collector, blind bool, broken, guessed []diag.Place) {
	sound := slices.DeleteFunc(slices.Clone(p.mounts), func(m Mount) bool { return slices.Contains(broken, m.Place) })
	ordered, wrong := order(p.mounts, p.disabled, p.registry)
	if len(broken) > 0 {
		_, among := order(sound, p.disabled, p.registry)
		wrong = slices.DeleteFunc(wrong, func(d *diag.Diagnostic) bool { return d.Slug != "missing" })
		wrong = append(wrong, slices.DeleteFunc(among, func(d *diag.Diagnostic) bool { return d.Slug == "missing" })...)
	}
	p.mounts = ordered
	for _, d := range wrong {
		if d.Slug == "missing" && (blind || slices.Contains(guessed, d.Place)) {
			continue
		}
		faults.add(d)
	}
}
