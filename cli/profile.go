package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/diag"
	"dsh/internal/dshhome"
)

func (a *app) profileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "list the profiles, or begin one of your own",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "print each profile, its bundles, and where it comes from; * marks the one in force",
			Args:  cobra.NoArgs,
			RunE:  func(*cobra.Command, []string) error { return a.listProfiles() },
		},
		&cobra.Command{
			Use:   "new NAME",
			Short: "make a directory for a profile in $DSH_HOME, with commented files to fill in",
			Args:  takes(1, "the name of one profile"),
			RunE:  func(_ *cobra.Command, args []string) error { return a.newProfile(args[0]) },
		},
	)
	return cmd
}

func (a *app) listProfiles() error {
	home, err := dshhome.Dir()
	if err != nil {
		return err
	}
	own := compose.Profiles(home)
	print := func(name, origin string) {
		mark := " "
		if name == a.profile {
			mark = "*"
		}
		fmt.Fprintf(a.stdout, "%s %-12s %s\n", mark, name, origin)
	}
	for _, p := range a.build.Profiles {
		if !slices.Contains(own, p.Name) {
			print(p.Name, "built in: "+strings.Join(p.Bundles, ", "))
		}
	}
	for _, name := range own {
		print(name, filepath.Join(home, "profiles", name))
	}
	return nil
}

const profileTemplate = `# The bundles of the profile %[1]s, in the order in which they add their rows. This build has: %[2]s.
bundles: [%[3]s]
`

const patchTemplate = `# What the profile %[1]s changes. An entry names a row by its id and replaces whole fields of it:
#
# - id: %[2]s
#   disabled: true
#
# A new row goes under insert:
#
# - insert:
#     - id: my-row
#       name: some-module       # dsh modules lists them
#       config: {}
#
# dsh --profile %[1]s config check      says what is wrong
# dsh --profile %[1]s config explain %[2]s
# dsh --profile %[1]s config dump --layers
[]
`

// newProfile makes the directory whole or not at all, and touches none that is there.
func (a *app) newProfile(name string) (err error) {
	if !compose.ValidProfileName(name) || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%q cannot be a profile's name, which is that of a directory", name)
	}
	bundles, row := a.profileParts(name)
	home, err := dshhome.Dir()
	if err != nil {
		return err
	}
	dir := filepath.Join(home, "profiles", name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return &runError{err}
	}
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return &runError{fmt.Errorf("%s is there already", dir)}
	case err != nil:
		return &runError{err}
	}
	defer func() {
		if err != nil {
			err = &runError{diag.Collect(err, os.RemoveAll(dir))}
		}
	}()
	var all []string
	for _, b := range a.build.Bundles {
		all = append(all, b.Name)
	}
	for file, text := range map[string]string{
		"profile.yaml":      fmt.Sprintf(profileTemplate, name, strings.Join(all, ", "), strings.Join(bundles, ", ")),
		"cordis.patch.yaml": fmt.Sprintf(patchTemplate, name, row),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.stdout, dir)
	return err
}

// profileParts returns the bundles that a new profile starts with, those of the build's profile of that name or of its
// first one, and a row that they have.
func (a *app) profileParts(name string) (bundles []string, row string) {
	i := max(0, slices.IndexFunc(a.build.Profiles, func(p Profile) bool { return p.Name == name }))
	bundles, row = a.build.Profiles[i].Bundles, "some-row"
	for _, b := range a.build.Bundles {
		if !slices.Contains(bundles, b.Name) {
			continue
		}
		layer := compose.Parse(compose.Source{Name: b.Name, File: b.File, Text: b.Patch})
		if rows, _ := compose.Fold([]compose.Layer{layer}, compose.FoldOptions{}); len(rows.IDs()) > 0 {
			row = rows.IDs()[len(rows.IDs())-1]
		}
	}
	return bundles, row
}
