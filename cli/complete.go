package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/dshhome"
)

// complete offers the values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completions offers the values of the flags that every command has.
func (a *app) completions(root *cobra.Command) {
	complete(root, "log-level", "debug", "info", "warn", "error")
	_ = root.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if a.settle() != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		home, err := dshhome.Dir()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := append(a.profileNames(), compose.Profiles(home)...)
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("patch", cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	_ = root.MarkPersistentFlagDirname("home")
	_ = root.MarkPersistentFlagDirname("directory")
	_ = root.RegisterFlagCompletionFunc("set", a.completeSet)
}

// completeRow offers the ids of rows.
func (a *app) completeRow(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.settled()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	rows, _ := compose.Fold(c.layers, c.fold) // what can be read of faulty layers is offered all the same
	return rows.IDs(), cobra.ShellCompDirectiveNoFileComp
}

// completeSet offers `ID.`, and behind it the keys of the row's config.
func (a *app) completeSet(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	c, err := a.settled()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var words []string
	id, _, dotted := strings.Cut(typed, ".")
	if !dotted {
		rows, _ := compose.Fold(c.layers, c.fold)
		for _, id := range rows.IDs() {
			words = append(words, id+".")
		}
		return words, more
	}
	plan, err := c.plan()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	settings, _ := plan.Settings(id)
	for _, s := range settings {
		words = append(words, id+"."+s.Key+"=")
	}
	return words, more
}

// settled composes what the command line says so far. Of the --set arguments, the one being typed is among them.
func (a *app) settled() (*composition, error) {
	if err := a.settle(); err != nil {
		return nil, err
	}
	return a.composeWith(a.patches, nil)
}
