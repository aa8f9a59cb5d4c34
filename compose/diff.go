package compose

import (
	"reflect"
	"slices"
)

// Effect is what going from one plan to another means for one row.
type Effect struct {
	ID   string
	Kind EffectKind
	// Fields are what is written differently in the row. A row can restart without one: because of Through, or because
	// an expression gives something else.
	Fields []FieldChange
	// Through are the rows that it needs, or needed, and that start, stop or restart.
	Through []string
}

// EffectKind says what happens to a row.
type EffectKind string

// The kinds of effects.
const (
	Starts   EffectKind = "start"
	Stops    EffectKind = "stop"
	Restarts EffectKind = "restart"
	Stays    EffectKind = "keep"
	NotRun   EffectKind = "off" // it is disabled in both
)

// Diff says what running after in place of before changes: rows with another configuration, what depends on them, and
// what comes and goes. The rows stand in the order in which after starts them, then those that are disabled or gone, in
// the order of before.
func Diff(before, after *Plan) []Effect {
	d := differ{before: before, after: after, effects: map[string]*Effect{}}
	for _, m := range after.mounts {
		d.add(m.ID, d.own(m))
	}
	for _, m := range before.mounts {
		d.add(m.ID, Stops)
	}
	for _, p := range []*Plan{after, before} {
		for _, off := range p.disabled {
			d.add(off.ID, NotRun)
		}
	}
	edges := append(before.Graph().Edges, after.Graph().Edges...)
	for slices.ContainsFunc(edges, d.follow) {
	}
	var effects []Effect
	for _, id := range d.order {
		effects = append(effects, *d.effects[id])
	}
	return effects
}

type differ struct {
	before, after *Plan
	effects       map[string]*Effect
	order         []string
}

func (d *differ) add(id string, kind EffectKind) {
	if d.effects[id] != nil {
		return
	}
	d.order = append(d.order, id)
	d.effects[id] = &Effect{ID: id, Kind: kind, Fields: compareFields(d.before.rows.byID[id], d.after.rows.byID[id])}
}

// own is the effect on a row of after, other rows left aside.
func (d *differ) own(m Mount) EffectKind {
	i := slices.IndexFunc(d.before.mounts, func(old Mount) bool { return old.ID == m.ID })
	switch {
	case i < 0:
		return Starts
	case d.before.mounts[i].Module.Name() != m.Module.Name() || !reflect.DeepEqual(d.before.mounts[i].Config, m.Config):
		return Restarts
	}
	return Stays
}

// follow restarts a row because of one that it needs, and reports whether that was news.
func (d *differ) follow(e Edge) bool {
	from, to := d.effects[e.From], d.effects[e.To]
	if from.Kind == Stays || from.Kind == NotRun || to.Kind != Stays && to.Kind != Restarts || slices.Contains(to.Through, e.From) {
		return false
	}
	to.Kind = Restarts
	to.Through = append(to.Through, e.From)
	return true
}
