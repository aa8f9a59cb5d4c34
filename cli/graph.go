package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
)

func (a *app) graphCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "draw the rows and what flows between them",
		Long: `Prints the composed rows as a graph, an arrow for each capability that a row takes from another: dashed where it could do
without. Disabled rows are grey.`,
		Example: `  dsh graph | dot -Tsvg > rows.svg`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			draw := map[string]func(compose.Graph) string{"dot": dot, "mermaid": mermaid}[format]
			if draw == nil {
				return fmt.Errorf("--format takes dot or mermaid, got %q", format)
			}
			c, err := a.compose()
			if err != nil {
				return err
			}
			plan, err := c.plan()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.stdout, draw(plan.Graph()))
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "dot", "dot, for Graphviz, or mermaid")
	complete(cmd, "format", "dot", "mermaid")
	return cmd
}

func dot(g compose.Graph) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
	}
	var b strings.Builder
	b.WriteString("digraph dsh {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	for _, r := range g.Rows {
		attributes := "label=" + quote(rowLabel(r, "\n"))
		if r.Disabled {
			attributes += ", style=dashed, color=gray, fontcolor=gray"
		}
		fmt.Fprintf(&b, "  %s [%s];\n", quote(r.ID), attributes)
	}
	for _, e := range g.Edges {
		attributes := "label=" + quote(word(e.Capability))
		if e.Optional {
			attributes += ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [%s];\n", quote(e.From), quote(e.To), attributes)
	}
	b.WriteString("}\n")
	return b.String()
}

func mermaid(g compose.Graph) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`&`, "#amp;", `"`, "#quot;", `<`, "#lt;", `>`, "#gt;", "#", "#35;", "\n", "<br>").Replace(s) + `"`
	}
	ids := map[string]string{}
	var b strings.Builder
	b.WriteString("flowchart LR\n  classDef disabled fill:#eee,stroke:#bbb,color:#999,stroke-dasharray:4\n")
	for i, r := range g.Rows {
		ids[r.ID] = fmt.Sprintf("r%d", i)
		class := ""
		if r.Disabled {
			class = ":::disabled"
		}
		fmt.Fprintf(&b, "  %s[%s]%s\n", ids[r.ID], quote(rowLabel(r, "\n")), class)
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if e.Optional {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|%s| %s\n", ids[e.From], arrow, quote(word(e.Capability)), ids[e.To])
	}
	return b.String()
}

// rowLabel is a row's id, and its module where that is called otherwise.
func rowLabel(r compose.RowInfo, separator string) string {
	if r.Module.Name() == r.ID {
		return r.ID
	}
	return r.ID + separator + "(" + r.Module.Name() + ")"
}

// word is a capability's name without its type.
func word(capability string) string {
	name, _, _ := strings.Cut(capability, " (")
	return name
}
