package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
)

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "say what --patch and --set change: which rows start, stop or restart, and why",
		Long: `Compares the layers without --patch and --set to the layers with them. A row restarts when its settings change, or when a
row that it needs starts, stops or restarts.`,
		Example: `  dsh --patch my.yaml config diff`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(a.patches)+len(a.sets) == 0 {
				return errors.New("there is nothing to compare with; give --patch or --set before config")
			}
			effects, err := a.diff()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(effectInfos(effects))
			}
			_, err = fmt.Fprint(a.stdout, effectsText(effects))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) diff() ([]compose.Effect, error) {
	var plans []*compose.Plan
	for _, with := range []bool{false, true} {
		patches, sets := a.patches, a.sets
		if !with {
			patches, sets = nil, nil
		}
		c, err := a.composeWith(patches, sets)
		if err != nil {
			return nil, err
		}
		p, err := c.plan()
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return compose.Diff(plans[0], plans[1]), nil
}

// effectInfo is what becomes of a row, as `dsh config diff --json` prints it.
type effectInfo struct {
	Row     string       `json:"row"`
	Effect  string       `json:"effect"` // start, stop, restart, keep, off
	Changes []changeInfo `json:"changes"`
	Through []string     `json:"through"` // rows that it needs and that change
}

type changeInfo struct {
	Path  string `json:"path"`
	Old   string `json:"old"` // as JSON, or `!!js ...`; empty: not set
	New   string `json:"new"`
	Place string `json:"place"`
}

func effectInfos(effects []compose.Effect) []effectInfo {
	infos := []effectInfo{}
	for _, e := range effects {
		info := effectInfo{Row: e.ID, Effect: string(e.Kind), Changes: []changeInfo{}, Through: append([]string{}, e.Through...)}
		for _, f := range e.Fields {
			info.Changes = append(info.Changes, changeInfo{f.Path, f.Old, f.New, f.Place.String()})
		}
		infos = append(infos, info)
	}
	return infos
}

// effectsText names each row that is affected with the reasons below it, then those that stay as they are.
func effectsText(effects []compose.Effect) string {
	var b strings.Builder
	var kept []string
	for _, e := range effects {
		if len(e.Fields) == 0 && (e.Kind == compose.Stays || e.Kind == compose.NotRun) {
			if e.Kind == compose.Stays {
				kept = append(kept, e.ID)
			}
			continue
		}
		fmt.Fprintf(&b, "%-9s%s\n", e.Kind, e.ID)
		for _, f := range e.Fields {
			fmt.Fprintf(&b, "           %s\n", change(f))
		}
		switch {
		case len(e.Through) > 0:
			fmt.Fprintf(&b, "           needs %s\n", strings.Join(e.Through, ", "))
		case e.Kind == compose.Restarts && len(e.Fields) == 0:
			fmt.Fprintf(&b, "           an expression gives another value\n")
		}
	}
	if len(kept) > 0 {
		fmt.Fprintf(&b, "%-9s%s\n", compose.Stays, strings.Join(kept, ", "))
	}
	return b.String()
}
