package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes returns the check of a command that has n arguments, which are what says.
func takes(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%s takes %s", cmd.CommandPath(), what)
	}
}

// exclude lets only one of the flags be given. What the library says of that is about groups.
func exclude(cmd *cobra.Command, flags ...string) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		var given []string
		for _, name := range flags {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return fmt.Errorf("%s exclude each other", strings.Join(given, " and "))
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// flagError says what is wrong with a flag without the words of the packages that noticed it.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		want := map[string]string{"bool": "true or false", "duration": "a duration, such as 90s or 20m"}[f.Value.Type()]
		if want == "" {
			return err
		}
		return fmt.Errorf("--%s takes %s, got %q", f.Name, want, invalid.GetValue())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s takes a value", missing.GetFlag().Name)
	}
	return err
}

// empty refuses a flag that was given with nothing in it, as a variable that is not set leaves it.
func empty(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := flags.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty", name)
		}
	}
	return nil
}
