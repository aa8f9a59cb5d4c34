package compose

import (
	"cmp"
	"slices"
	"strings"

	"dsh/internal/diag"
)

// Faults is everything that is wrong with a composition, in layer order. Each fault is a *diag.Diagnostic.
type Faults struct{ list []*diag.Diagnostic }

// Error returns a line for each fault.
func (f *Faults) Error() string {
	lines := make([]string, len(f.list))
	for i, d := range f.list {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults as errors.
func (f *Faults) Unwrap() []error {
	errs := make([]error, len(f.list))
	for i, d := range f.list {
		errs[i] = d
	}
	return errs
}

// Diagnostics returns the faults.
func (f *Faults) Diagnostics() []*diag.Diagnostic { return slices.Clone(f.list) }

// Report returns the faults as a person reads them, with excerpts and hints, a blank line between two.
func (f *Faults) Report() string {
	reports := make([]string, len(f.list))
	for i, d := range f.list {
		reports[i] = d.Report()
	}
	return strings.Join(reports, "\n")
}

// collector gathers the faults of all steps.
type collector struct{ list []*diag.Diagnostic }

func (c *collector) add(faults ...*diag.Diagnostic) { c.list = append(c.list, faults...) }

func (c *collector) fault(place diag.Place, row, slug, message, hint string) {
	c.add(&diag.Diagnostic{Place: place, Row: row, Slug: slug, Message: message, Hint: hint})
}

func (c *collector) len() int { return len(c.list) }

// err returns the faults in the order of the layers and of the text in them, or nil. A fault that stands where another
// one of the same kind does is dropped: an alias brings the same node to several rows.
func (c *collector) err(layers []Layer) error {
	if len(c.list) == 0 {
		return nil
	}
	rank := map[string]int{}
	for i, l := range layers {
		if _, known := rank[l.File]; !known {
			rank[l.File] = i
		}
	}
	of := func(d *diag.Diagnostic) int {
		file := d.Place.File
		if strings.HasPrefix(file, setFile+" ") {
			file = setFile
		}
		if i, ok := rank[file]; ok {
			return i
		}
		return len(layers)
	}
	list := slices.Clone(c.list)
	slices.SortStableFunc(list, func(a, b *diag.Diagnostic) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	list = slices.CompactFunc(list, func(a, b *diag.Diagnostic) bool {
		return a.Place == b.Place && a.Row == b.Row && a.Slug == b.Slug && a.Message == b.Message
	})
	return &Faults{list: list}
}
