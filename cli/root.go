package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/diag"
	"dsh/internal/dshhome"
	"dsh/module"
)

// app is one run of the program.
type app struct {
	build          Build
	stdout, stderr io.Writer

	profile, home, dir, logLevel         string
	patches, sets                        []string
	noBundles, allowUnknown, dumpFromTop bool

	session atomic.Value // string: the id of the session at work, for who ends it from another goroutine

	began string // the directory that dsh was started in
	log   *slog.Logger
}

func (a *app) root() *cobra.Command {
	var task taskOptions
	root := &cobra.Command{
		Use:   "dsh [flags] TASK...",
		Short: "run an agent's commands on a real machine, through a system composed from patch files",
		Long: `dsh composes a system from patch files and runs commands through it, or an agent on a task. Before it ends, every process
that it started has been proven gone.

The first word decides: that of a command is the command, otherwise all words are a task for the agent. Its final answer
is printed, and the exit status is 0 if it got to one, 1 if not, 2 for a mistake in the command line or configuration or
a key that is missing, 3 if something that the task started could not be proven gone, and 130, 143 or 129 if dsh was
interrupted, terminated or hung up.`,
		Example: `  dsh "fix the failing test in this folder"
  dsh exec 'make test'
  dsh --set bash-sandbox.timeoutMs=5000 exec --json 'sleep 9'
  dsh --patch my.yaml config check`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := empty(cmd.Flags(), "home", "directory", "profile"); err != nil {
				return err
			}
			return a.settle()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case a.dumpFromTop && len(args) > 0:
				return fmt.Errorf("--dump-config takes no task, got %q", args[0])
			case a.dumpFromTop:
				return a.dump(dumpOptions{format: "yaml"})
			case len(args) == 0:
				return cmd.Help()
			}
			return a.task(strings.Join(args, " "), task)
		},
	}
	task.define(root)
	root.SetFlagErrorFunc(flagError)
	root.Flags().SetInterspersed(false)
	f := root.PersistentFlags()
	f.StringVar(&a.profile, "profile", "", "list of bundles to compose ("+strings.Join(a.profileNames(), ", ")+")")
	f.StringArrayVar(&a.patches, "patch", nil, "apply a patch file on top; may be repeated")
	f.StringArrayVar(&a.sets, "set", nil, "set one config key, as ID.PATH=VALUE; may be repeated")
	f.StringVar(&a.home, "home", "", "directory of dsh's own files, instead of $DSH_HOME or ~/.dsh")
	f.StringVarP(&a.dir, "directory", "C", "", "work in this directory, as if started there")
	f.StringVar(&a.logLevel, "log-level", "warn", "least level of the log on stderr: debug, info, warn, error")
	f.BoolVar(&a.noBundles, "no-bundles", false, "compose the --patch files alone")
	f.BoolVar(&a.allowUnknown, "allow-unknown-ids", false, "let a patch name rows that do not exist, and skip it")
	root.Flags().BoolVar(&a.dumpFromTop, "dump-config", false, "the same as config dump")
	root.AddCommand(a.execCommand(), a.configCommand(), a.modulesCommand(), a.graphCommand(), a.doctorCommand(), a.profileCommand(),
		a.sessionCommand(), a.versionCommand())
	a.completions(root)
	return root
}

// settle applies the flags that change the process itself. What is relative counts from the directory that dsh was started
// in, which is therefore kept before -C takes effect.
func (a *app) settle() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return fmt.Errorf("--log-level takes debug, info, warn or error, got %q", a.logLevel)
	}
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	if a.noBundles && a.profile != "" {
		return errors.New("--no-bundles and --profile exclude each other")
	}
	if a.profile == "" {
		a.profile = os.Getenv("DSH_PROFILE")
	}
	if a.profile == "" {
		a.profile = a.build.Profiles[0].Name
	}
	if slices.Contains(a.patches, "") {
		return errors.New("--patch is empty")
	}
	if slices.Contains(a.sets, "") {
		return errors.New("--set is empty")
	}
	a.began, _ = os.Getwd()
	if err := a.settleHome(); err != nil {
		return err
	}
	if a.dir != "" {
		if err := os.Chdir(a.dir); err != nil {
			return fmt.Errorf("-C %s: %w", a.dir, err)
		}
		// PWD names the directory by the path that the user gave, unless it is wrong; shells go by it.
		if abs, err := filepath.Abs("."); err == nil {
			return os.Setenv("PWD", abs)
		}
	}
	return nil
}

// settleHome makes what was said of dsh's own directory absolute, for the same reason. Modules find it where every process
// does: in the environment.
func (a *app) settleHome() error {
	said := cmp.Or(a.home, os.Getenv(dshhome.Variable))
	if said == "" {
		return nil
	}
	home, err := dshhome.Resolve(said)
	switch {
	case err == nil:
		return os.Setenv(dshhome.Variable, home)
	case a.home != "":
		return fmt.Errorf("--home %s: %w", a.home, err)
	}
	return nil // commands that need no home work without one; others say what is wrong
}

func (a *app) profileNames() []string {
	names := make([]string, len(a.build.Profiles))
	for i, p := range a.build.Profiles {
		names[i] = p.Name
	}
	return names
}

// bundles returns the bundles that the build gives the profile in force. A profile of the user's own has none here: its
// profile.yaml lists them.
func (a *app) bundles(home string) ([]module.Bundle, error) {
	i := slices.IndexFunc(a.build.Profiles, func(p Profile) bool { return p.Name == a.profile })
	if i < 0 {
		own := compose.Profiles(home)
		if compose.ValidProfileName(a.profile) && slices.Contains(own, a.profile) {
			return nil, nil
		}
		return nil, fmt.Errorf("no profile is called %q; there are %s", a.profile, strings.Join(append(a.profileNames(), own...), ", "))
	}
	var bundles []module.Bundle
	for _, name := range a.build.Profiles[i].Bundles {
		for _, b := range a.build.Bundles {
			if b.Name == name {
				bundles = append(bundles, b)
			}
		}
	}
	return bundles, nil
}

// composition is what the flags describe.
type composition struct {
	layers   []compose.Layer
	registry *module.Registry
	fold     compose.FoldOptions
	machine  compose.Machine

	skipped func(*diag.Diagnostic) // told of each entry that --allow-unknown-ids left out
}

func (a *app) compose() (*composition, error) { return a.composeWith(a.patches, a.sets) }

// composeWith composes with other --patch and --set arguments than those of the command line.
func (a *app) composeWith(patches, sets []string) (*composition, error) {
	registry, err := module.NewRegistry(a.build.Bundles...)
	if err != nil {
		return nil, &runError{err}
	}
	machine, err := compose.ThisMachine()
	if err != nil {
		return nil, err
	}
	in := compose.Inputs{Patches: patches, Dir: a.began, Sets: sets}
	if !a.noBundles {
		if in.Bundles, err = a.bundles(machine.Home); err != nil {
			return nil, err
		}
		in.Available, in.Profile, in.Home = a.build.Bundles, a.profile, machine.Home
		if a.build.Deployment != nil {
			in.Deployment = &compose.Source{Name: "deployment", File: "cordis.patch.yaml", Text: a.build.Deployment}
		}
	}
	return &composition{
		layers: compose.Load(in), registry: registry, machine: machine,
		fold:    compose.FoldOptions{AllowUnknownIDs: a.allowUnknown},
		skipped: func(d *diag.Diagnostic) { a.log.Warn("a patch entry is skipped", "why", d.Error(), "hint", d.Hint) },
	}, nil
}

// set adds what a flag stands for, beside those of --set.
func (c *composition) set(flag, target string, value any) {
	c.layers = append(c.layers, compose.ParseSet(flag, target+"="+quoted(value)))
}

func (c *composition) plan() (*compose.Plan, error) {
	plan, err := compose.MakePlan(c.layers, c.registry, c.machine, c.fold)
	if err == nil {
		c.tell(plan.Rows())
	}
	return plan, err
}

// tell speaks of what was skipped, once.
func (c *composition) tell(rows *compose.Rows) {
	if c.skipped == nil {
		return
	}
	for _, d := range rows.Skipped() {
		c.skipped(d)
	}
	c.skipped = nil
}
