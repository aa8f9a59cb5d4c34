package cli

import (
	"github.com/spf13/cobra"

	"dsh/compose"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print a JSON Schema of patch files, for an editor",
		Long: `Prints a JSON Schema (draft 7) of a patch file on top of the present layers: the settings of every module of this build,
and the rows that can be changed. docs/custom-builds.md says how an editor is told of it.`,
		Example: `  dsh config schema > ~/.dsh/patch.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.compose()
			if err != nil {
				return err
			}
			// A layer with faults is what an editor with the schema mends, so they are no reason to give none.
			rows, _ := compose.Fold(c.layers, c.fold)
			text, err := compose.Schema(rows, c.registry)
			if err != nil {
				return &runError{err}
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
}
