package compose

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dsh/internal/diag"
	"dsh/module"
)

// order returns mounts in the order in which they start: what a row needs before the row, and layer order among rows
// that do not wait for each other. An optional need orders two rows unless that closed a cycle. The faults are needs that
// no row provides, capabilities that two rows provide, and cycles, in the layer order of their rows; rows of a cycle stay
// at the end.
func order(mounts []Mount, disabled []disabledRow, reg *module.Registry) (ordered []Mount, faults []*diag.Diagnostic) {
	g := &graph{mounts: mounts, disabled: disabled, reg: reg, providers: map[reflect.Type][]int{}}
	for i, m := range mounts {
		for _, t := range m.Module.Provides() {
			g.providers[t] = append(g.providers[t], i)
		}
	}
	g.link()
	sequence, stuck := g.sort()

	byRow := make([][]*diag.Diagnostic, len(mounts))
	for i := range mounts {
		byRow[i] = append(g.missing(i), g.doubled(i)...)
	}
	for _, cycle := range g.cycles(stuck) {
		byRow[cycle[0]] = append(byRow[cycle[0]], g.cyclic(cycle))
	}
	for _, i := range append(sequence, stuck...) {
		ordered = append(ordered, mounts[i])
	}
	return ordered, slices.Concat(byRow...)
}

// graph is rows by their index in layer order, and who waits for whom.
type graph struct {
	mounts    []Mount
	disabled  []disabledRow
	reg       *module.Registry
	providers map[reflect.Type][]int
	waits     [][]int // waits[i]: the rows that start before row i
}

// link fills in waits, the optional needs last, as they yield.
func (g *graph) link() {
	g.waits = make([][]int, len(g.mounts))
	for _, optional := range []bool{false, true} {
		for i, m := range g.mounts {
			for _, n := range m.Module.Needs() {
				if n.Optional != optional {
					continue
				}
				for _, p := range g.providers[n.Type] {
					if slices.Contains(g.waits[i], p) || optional && g.reaches(p, i, map[int]bool{}) {
						continue
					}
					g.waits[i] = append(g.waits[i], p)
				}
			}
		}
	}
}

// reaches reports whether row from waits for row to, directly or not. A row reaches itself.
func (g *graph) reaches(from, to int, seen map[int]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	return slices.ContainsFunc(g.waits[from], func(next int) bool {
		return !seen[next] && g.reaches(next, to, seen)
	})
}

// sort returns the rows that can start, in order, and those that a cycle holds up, in layer order.
func (g *graph) sort() (sequence, stuck []int) {
	placed := make([]bool, len(g.mounts))
	for range g.mounts {
		next := -1
		for i := range g.mounts {
			if !placed[i] && !slices.ContainsFunc(g.waits[i], func(p int) bool { return !placed[p] }) {
				next = i
				break
			}
		}
		if next < 0 {
			break
		}
		placed[next] = true
		sequence = append(sequence, next)
	}
	for i := range g.mounts {
		if !placed[i] {
			stuck = append(stuck, i)
		}
	}
	return sequence, stuck
}

// missing returns a fault for each need of row i that nobody provides.
func (g *graph) missing(i int) (faults []*diag.Diagnostic) {
	m := g.mounts[i]
	for _, n := range m.Module.Needs() {
		if n.Optional || len(g.providers[n.Type]) > 0 {
			continue
		}
		faults = append(faults, &diag.Diagnostic{
			Place: m.Place, Slug: "missing",
			Message: fmt.Sprintf("row %q needs %s, which no enabled row provides", m.ID, g.reg.Word(n.Type)),
			Hint:    g.remedy(n.Type),
		})
	}
	return faults
}

// remedy says who could provide t: disabled rows, else modules that no row mounts.
func (g *graph) remedy(t reflect.Type) string {
	var hints []string
	for _, d := range g.disabled {
		if !slices.Contains(d.Module.Provides(), t) {
			continue
		}
		hint := fmt.Sprintf("row %q provides it but is disabled", d.ID)
		if d.Reason != "" {
			hint += ": " + d.Reason
		}
		if at := d.ReasonPlace.String(); at != "" {
			hint += " (" + at + ")"
		}
		hints = append(hints, hint)
	}
	if len(hints) == 0 {
		for _, m := range g.reg.Modules() {
			if slices.Contains(m.Provides(), t) {
				hints = append(hints, fmt.Sprintf("module %q provides it, but no row mounts it", m.Name()))
			}
		}
	}
	if len(hints) == 0 {
		return "no module of this build provides it"
	}
	return strings.Join(hints, "\n")
}

// doubled returns a fault for each earlier row that provides what row i provides too, at the one that was mounted by the
// later layer. Of three rows, the second and the third are each set against the first.
func (g *graph) doubled(i int) (faults []*diag.Diagnostic) {
	m := g.mounts[i]
	shared := map[int][]string{}
	var firsts []int
	for _, t := range m.Module.Provides() {
		first := g.providers[t][0]
		if first == i {
			continue
		}
		if shared[first] == nil {
			firsts = append(firsts, first)
		}
		shared[first] = append(shared[first], g.reg.Word(t))
	}
	for _, first := range firsts {
		before, after := g.mounts[first], m
		if before.mounting.layer > after.mounting.layer {
			before, after = after, before
		}
		hint := "disable one"
		if at := before.mounting.place.String(); at != "" {
			hint += fmt.Sprintf(": %q is %s at %s", before.ID, before.mounting.word, at)
		}
		faults = append(faults, &diag.Diagnostic{
			Place: after.mounting.place, Slug: "doubled",
			Message: fmt.Sprintf("rows %q and %q both provide %s", before.ID, after.ID, strings.Join(shared[first], " and ")),
			Hint:    hint,
		})
	}
	return faults
}

// cycles returns a shortest cycle through each of the stuck rows that is on one, each row in one cycle only. A cycle
// begins with its first row in layer order, and each row waits for the next.
func (g *graph) cycles(stuck []int) (cycles [][]int) {
	told := map[int]bool{}
	for _, i := range stuck {
		if told[i] {
			continue
		}
		cycle := g.shortest(i)
		if slices.ContainsFunc(cycle, func(j int) bool { return told[j] }) {
			continue // it shares a row with a cycle that is told already
		}
		for _, j := range cycle {
			told[j] = true
		}
		if len(cycle) > 0 {
			cycles = append(cycles, cycle)
		}
	}
	return cycles
}

// shortest returns a shortest way from row i back to itself, i first, or nothing.
func (g *graph) shortest(i int) []int {
	ways := [][]int{{i}}
	seen := map[int]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range g.waits[way[len(way)-1]] {
			if next == i {
				return way
			}
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

// cyclic returns the fault of one cycle: which row waits for which, and for what.
func (g *graph) cyclic(cycle []int) *diag.Diagnostic {
	steps := make([]string, len(cycle))
	for k, i := range cycle {
		m, next := g.mounts[i], g.mounts[cycle[(k+1)%len(cycle)]]
		steps[k] = fmt.Sprintf("%q needs %s from %q", m.ID, g.reg.Word(between(m, next)), next.ID)
	}
	return &diag.Diagnostic{
		Place: g.mounts[cycle[0]].Place, Slug: "cycle",
		Message: "rows need each other: " + strings.Join(steps, ", "),
		Hint:    "disable one, or replace it with a row whose module does not need the next",
	}
}

// between returns what m needs from next.
func between(m, next Mount) reflect.Type {
	for _, n := range m.Module.Needs() {
		if !n.Optional && slices.Contains(next.Module.Provides(), n.Type) {
			return n.Type
		}
	}
	return nil
}
