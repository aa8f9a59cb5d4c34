package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "look at the composed rows without starting anything",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.checkCommand(), a.dumpCommand(), a.explainCommand(), a.diffCommand(), a.schemaCommand())
	return cmd
}

func (a *app) checkCommand() *cobra.Command {
	var platform string
	var env []string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "print every fault of the composition; nothing and status 0 when there is none",
		Long: `Checks everything that can be checked without starting a row: every patch file, every row, expression and setting, and
what rows need of each other. With faults the exit status is 2.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.compose()
			if err != nil {
				return err
			}
			if err := retarget(&c.machine, platform, env); err != nil {
				return err
			}
			_, err = c.plan()
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&platform, "platform", "", "check for another platform: linux, darwin, win32")
	f.StringArrayVar(&env, "env", nil, "check with this variable set, as NAME=VALUE; may be repeated")
	complete(cmd, "platform", "linux", "darwin", "win32")
	return cmd
}

// retarget makes m another machine.
func retarget(m *compose.Machine, platform string, env []string) error {
	switch platform {
	case "":
	case "linux", "darwin", "win32":
		m.Platform = platform
	default:
		return fmt.Errorf("--platform takes linux, darwin or win32, got %q", platform)
	}
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return fmt.Errorf("--env takes NAME=VALUE, got %q", kv)
		}
		m.Env[k] = v
	}
	return nil
}

type dumpOptions struct {
	origins, rows, layers bool
	format                string
}

func (a *app) dumpCommand() *cobra.Command {
	var o dumpOptions
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "print the composed rows as a patch file",
		Long: `Prints the rows that the layers compose, as one patch file that would compose them again, each run of rows under a
comment that names its layer. Expressions are printed as they were written.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.dump(o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.origins, "origins", false, "say behind each field which file and line it comes from")
	f.BoolVar(&o.rows, "rows", false, "stop after the layers were folded, before any module is looked up")
	f.BoolVar(&o.layers, "layers", false, "print instead what each layer changed in the rows of those before it")
	f.StringVar(&o.format, "format", "yaml", "yaml, or json for a list of rows")
	exclude(cmd, "layers", "origins")
	exclude(cmd, "layers", "rows")
	exclude(cmd, "layers", "format")
	complete(cmd, "format", "yaml", "json")
	return cmd
}

func (a *app) dump(o dumpOptions) error {
	if o.format != "yaml" && o.format != "json" {
		return fmt.Errorf("--format takes yaml or json, got %q", o.format)
	}
	if o.format == "json" && o.origins {
		return errors.New("--origins is for --format yaml")
	}
	c, err := a.compose()
	if err != nil {
		return err
	}
	if o.layers {
		return a.dumpLayers(c)
	}
	rows, err := c.rows(o.rows)
	if err != nil {
		return err
	}
	print := rows.JSON
	if o.format == "yaml" {
		print = func() ([]byte, error) { return rows.YAML(compose.DumpOptions{Origins: o.origins}) }
	}
	text, err := print()
	if err != nil {
		return &runError{err}
	}
	_, err = a.stdout.Write(text)
	return err
}

// rows returns the composed rows, checked as far as `dump` checks them.
func (c *composition) rows(foldOnly bool) (*compose.Rows, error) {
	if foldOnly {
		rows, err := compose.Fold(c.layers, c.fold)
		if err == nil {
			c.tell(rows)
		}
		return rows, err
	}
	plan, err := c.plan()
	if err != nil {
		return nil, err
	}
	return plan.Rows(), nil
}
