package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/diag"
)

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain ROW",
		Short: "say of one row what each of its settings is, and which layer made it so",
		Long: `Prints the row, what it takes from other rows, and each key of its config: the value in force, the default, the type,
what it is for, and the place of the layer that set it. A value that an expression read from a variable is not printed.`,
		Args:              takes(1, "the id of one row"),
		ValidArgsFunction: a.completeRow,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.compose()
			if err != nil {
				return err
			}
			plan, err := c.plan()
			if err != nil {
				return err
			}
			info, err := explain(plan, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(info)
			}
			_, err = fmt.Fprint(a.stdout, info.text())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// rowInfo is a row, as `dsh config explain --json` prints it.
type rowInfo struct {
	ID       string        `json:"id"`
	Module   string        `json:"module"`
	Summary  string        `json:"summary"`
	Layer    string        `json:"layer"`
	Place    string        `json:"place"`
	Patched  []string      `json:"patched"`
	Disabled *disabledInfo `json:"disabled"` // null: the row is enabled
	Provides []string      `json:"provides"`
	Needs    []edgeInfo    `json:"needs"`
	Settings []settingInfo `json:"settings"`
}

type disabledInfo struct {
	Expression string `json:"expression"` // empty: it is written as true
	Place      string `json:"place"`
}

type edgeInfo struct {
	Capability string `json:"capability"`
	Optional   bool   `json:"optional"`
	From       string `json:"from"` // the row that provides it; empty: none
}

type settingInfo struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Doc     string `json:"doc"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Layer   string `json:"layer"` // empty: the value is the default
	Place   string `json:"place"`
}

func explain(plan *compose.Plan, id string) (rowInfo, error) {
	row, ok := plan.Row(id)
	if !ok {
		return rowInfo{}, noRow(plan.Rows(), id)
	}
	info := rowInfo{
		ID: row.ID, Module: row.Module.Name(), Summary: row.Module.Summary(), Layer: row.Layer, Place: row.Place.String(),
		Patched: append([]string{}, row.Patched...), Provides: []string{}, Needs: []edgeInfo{}, Settings: []settingInfo{},
	}
	if row.Disabled {
		info.Disabled = &disabledInfo{row.Reason, row.ReasonPlace.String()}
	}
	for _, t := range row.Module.Provides() {
		info.Provides = append(info.Provides, plan.Word(t))
	}
	from := map[string]string{}
	for _, e := range plan.Graph().Edges {
		if e.To == id {
			from[e.Capability] = e.From
		}
	}
	for _, n := range row.Module.Needs() {
		info.Needs = append(info.Needs, edgeInfo{plan.Word(n.Type), n.Optional, from[plan.Word(n.Type)]})
	}
	settings, _ := plan.Settings(id)
	for _, s := range settings {
		info.Settings = append(info.Settings, settingInfo{s.Key, s.Type, s.Doc, s.Value, s.Default, s.Layer, s.Place.String()})
	}
	return info, nil
}

// noRow is the error of an id that is no row's.
func noRow(rows *compose.Rows, id string) error {
	hint := "the rows are " + strings.Join(rows.IDs(), ", ")
	if near := diag.Nearest(id, rows.IDs()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	for _, known := range rows.IDs() {
		if known == id {
			return fmt.Errorf("row %q is a group, which has no settings", id)
		}
	}
	return fmt.Errorf("no row has the id %q; %s", id, hint)
}

// text returns what `dsh config explain` prints.
func (r rowInfo) text() string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "  %-10s%s\n", label, text) }
	fmt.Fprintf(&b, "%s: %s\n", r.ID, r.Summary)
	if r.Module != r.ID {
		line("module", r.Module)
	}
	from := r.Place + " (" + r.Layer + ")"
	if len(r.Patched) > 0 {
		from += ", patched by " + strings.Join(r.Patched, ", ")
	}
	line("from", oneLine(from))
	if r.Disabled != nil {
		reason := "true"
		if r.Disabled.Expression != "" {
			reason = r.Disabled.Expression
		}
		line("disabled", oneLine(reason+" ("+r.Disabled.Place+")"))
	}
	if len(r.Provides) > 0 {
		line("provides", strings.Join(r.Provides, ", "))
	}
	for _, n := range r.Needs {
		switch {
		case n.From != "":
			line("needs", n.Capability+" from "+n.From)
		case n.Optional:
			line("needs", n.Capability+", if there is one; there is none")
		default:
			line("needs", n.Capability)
		}
	}
	for _, s := range r.Settings {
		fmt.Fprintf(&b, "\n  %s: %s\n", s.Key, s.Value)
		fmt.Fprintf(&b, "      %s\n", s.Doc)
		origin := "the default"
		if s.Layer != "" {
			origin = fmt.Sprintf("from %s; the default is %s", oneLine(origins(s)), s.Default)
		}
		fmt.Fprintf(&b, "      %s, %s\n", s.Type, origin)
	}
	return b.String()
}

// origins is the place of a setting, with the layer's name where the file does not say it.
func origins(s settingInfo) string {
	if strings.HasPrefix(s.Place, s.Layer) {
		return s.Place
	}
	return s.Place + " (" + s.Layer + ")"
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
