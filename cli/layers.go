package cli

import (
	"fmt"
	"strings"

	"dsh/compose"
	"dsh/internal/diag"
)

// dumpLayers prints what each layer changed, as it is written.
func (a *app) dumpLayers(c *composition) error {
	if _, err := c.plan(); err != nil {
		return err
	}
	layers, err := compose.Changes(c.layers, c.registry, c.fold)
	if err != nil {
		return err
	}
	for i, l := range layers {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		fmt.Fprintln(a.stdout, "== "+layerName(l.Name, l.File))
		if len(l.Rows) == 0 {
			fmt.Fprintln(a.stdout, "  (changes nothing)")
		}
		for _, r := range l.Rows {
			a.printRow(r)
		}
	}
	return nil
}

func (a *app) printRow(r compose.RowChange) {
	sign := map[compose.ChangeKind]string{compose.Inserted: "+", compose.Changed: "~", compose.Removed: "-"}[r.Kind]
	name := ""
	if r.Module != "" && r.Module != r.ID {
		name = " (" + r.Module + ")"
	}
	fmt.Fprintf(a.stdout, "  %s %s%s\n", sign, r.ID, name)
	for _, f := range r.Fields {
		if r.Kind == compose.Inserted {
			fmt.Fprintf(a.stdout, "      %s: %s%s\n", f.Path, oneLine(f.New), at(f.Place))
			continue
		}
		fmt.Fprintf(a.stdout, "      %s\n", change(f))
	}
}

// change says what became of one value, and where that is written.
func change(f compose.FieldChange) string {
	word := func(text string) string {
		if text == "" {
			return "(not set)"
		}
		return oneLine(text)
	}
	return fmt.Sprintf("%s: %s -> %s%s", f.Path, word(f.Old), word(f.New), at(f.Place))
}

// at returns a place in brackets, or nothing for nowhere.
func at(p diag.Place) string {
	if s := p.String(); s != "" {
		return " (" + oneLine(s) + ")"
	}
	return ""
}

// layerName is how people find a layer.
func layerName(name, file string) string {
	if file == name {
		return oneLine(name)
	}
	return oneLine(name) + " (" + oneLine(file) + ")"
}

// oneLine returns text with every run of white space made one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
