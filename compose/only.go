package compose

import (
	"reflect"
	"slices"
)

// Only returns the plan of the row that provides t and of the rows that it cannot do without, and false when no row
// provides it. It is for a host that wants one thing of a composition.
func (p *Plan) Only(t reflect.Type) (*Plan, bool) {
	wanted := map[reflect.Type]bool{t: true}
	only := *p
	only.mounts = nil
	// A row stands behind those that it needs, so one pass from the end finds them all.
	for _, m := range slices.Backward(p.mounts) {
		if !slices.ContainsFunc(m.Module.Provides(), func(t reflect.Type) bool { return wanted[t] }) {
			continue
		}
		only.mounts = append(only.mounts, m)
		for _, n := range m.Module.Needs() {
			wanted[n.Type] = wanted[n.Type] || !n.Optional
		}
	}
	slices.Reverse(only.mounts)
	return &only, len(only.mounts) > 0
}
