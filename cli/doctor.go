package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/internal/dshhome"
	"dsh/modules/sandbox"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/tools"
)

// doctorWithin bounds what the rows are asked.
const doctorWithin = 30 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what works on this machine, what does not and why, and what would mend it",
		Long: `Starts the composed rows, asks them what they found, and runs one command through them as dsh exec would. The exit status
is 0 if that command ran, confined where the rows say so, and 1 otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, interrupt, err := a.examine()
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(d)
			} else {
				_, err = fmt.Fprint(a.stdout, d.text())
			}
			switch {
			case err != nil:
				return err
			case interrupt != 0:
				return &exitError{interrupt}
			case !d.OK:
				return &exitError{exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// diagnosis is what `dsh doctor --json` prints.
type diagnosis struct {
	OK       bool              `json:"ok"` // a command ran
	Version  string            `json:"version"`
	Platform string            `json:"platform"`
	Go       string            `json:"go"`
	Kernel   string            `json:"kernel,omitempty"`
	Home     pathInfo          `json:"home"`
	Run      pathInfo          `json:"run"` // files while dsh runs, and whole outputs
	Profile  string            `json:"profile"`
	Layers   []layerInfo       `json:"layers"`
	Ranges   []rangeInfo       `json:"ranges"`   // what holds the processes of a command together
	Backends []sandbox.Backend `json:"backends"` // what confines
	Shell    shellInfo         `json:"shell"`
	Command  *commandInfo      `json:"command"` // null: none was run
	Problems []problem         `json:"problems"`
}

type pathInfo struct {
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
}

type layerInfo struct {
	Name string `json:"name"`
	File string `json:"file"`
}

type rangeInfo struct {
	Kind   string `json:"kind"`
	Chosen bool   `json:"chosen"`
	Reason string `json:"reason"`
}

type shellInfo struct {
	Path    string `json:"path"` // empty: not found
	Version string `json:"version,omitempty"`
}

type commandInfo struct {
	DurationMs int64          `json:"durationMs"`
	Range      string         `json:"range"`
	Sandbox    *sandbox.Facts `json:"sandbox"` // null: the executor confines nothing
}

// problem is something that does not work, and what would bring it.
type problem struct {
	Text   string `json:"problem"`
	Remedy string `json:"remedy,omitempty"` // a command, or a change of the rows
	Grave  bool   `json:"grave"`            // no command can be run, or none as the rows say
}

func (d *diagnosis) add(grave bool, text, remedy string) {
	d.Problems = append(d.Problems, problem{oneLine(text), remedy, grave})
}

// examine makes the diagnosis. Its error is a fault of the composition, or of the command line.
func (a *app) examine() (d *diagnosis, interrupt int, err error) {
	c, err := a.compose()
	if err != nil {
		return nil, 0, err
	}
	plan, err := c.plan()
	if err != nil {
		return nil, 0, err
	}
	d = &diagnosis{
		Version: version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Kernel: kernel(),
		Profile: a.profile, Layers: []layerInfo{}, Ranges: []rangeInfo{}, Backends: []sandbox.Backend{}, Problems: []problem{},
	}
	if a.noBundles {
		d.Profile = ""
	}
	for _, l := range c.layers {
		d.Layers = append(d.Layers, layerInfo{l.Name, l.File})
	}
	d.paths(c.machine.Home)
	var f *failure
	interrupt, f = a.host(
		func() (*compose.Plan, error) { return plan, nil },
		func(ctx context.Context, running *compose.Running) *failure {
			d.ask(ctx, running)
			return nil
		})
	if f != nil {
		d.OK = false
		d.failed(f)
	}
	return d, interrupt, nil
}

// paths says where dsh's files are. Without a home that can be written, what is needed while it runs is elsewhere.
func (d *diagnosis) paths(home string) {
	d.Home = pathInfo{home, writable(home)}
	d.Run = pathInfo{filepath.Join(home, "run"), d.Home.Writable && writable(filepath.Join(home, "run"))}
	if d.Run.Writable {
		return
	}
	d.add(false, home+" cannot be written: profiles and session logs cannot be kept there", "use --home DIR, or set DSH_HOME")
	spare := dshhome.Spare()
	d.Run = pathInfo{spare, writable(spare)}
}

// failed says why the rows do not run, or did not stop.
func (d *diagnosis) failed(f *failure) {
	remedy := ""
	if _, missing := lookAbsolute("bash"); missing {
		remedy = install("bash")
	}
	d.add(true, f.Message, remedy)
}

// ask asks the rows what they found, and runs a command through them.
func (d *diagnosis) ask(ctx context.Context, running *compose.Running) {
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	if rt, ok := compose.Value[subprocess.Runtime](running); ok {
		d.askRuntime(ctx, rt)
	} else {
		d.add(true, "no enabled row runs processes (subprocess)", "")
	}
	if p, ok := compose.Value[sandbox.Provider](running); ok {
		d.askSandbox(ctx, p)
	}
	if registry, ok := compose.Value[tools.Registry](running); ok {
		d.try(ctx, registry)
	} else {
		d.add(true, "no enabled row offers tools", "")
	}
	policies, ok := compose.Value[sandbox.Policies](running)
	if ok && d.Command != nil && d.Command.Sandbox == nil && policies.Default() != sandbox.DangerFullAccess {
		d.add(false, fmt.Sprintf("commands are not confined, although the policy says %s: the row that provides shell confines nothing", policies.Default()),
			"enable bash-sandbox in its place, or --set sandbox-policy.mode=danger-full-access")
	}
}

func (d *diagnosis) askRuntime(ctx context.Context, rt subprocess.Runtime) {
	if r, ok := rt.(subprocess.RangeReporter); ok {
		for _, v := range r.Ranges() {
			d.Ranges = append(d.Ranges, rangeInfo{string(v.Kind), v.Chosen, v.Reason})
		}
	} else {
		d.Ranges = append(d.Ranges, rangeInfo{string(rt.Range()), true, "the runtime knows no other"})
	}
	path, err := rt.ResolveExecutable(ctx, "bash")
	if err != nil {
		d.add(true, err.Error(), install("bash"))
		return
	}
	d.Shell.Path = path
}

func (d *diagnosis) askSandbox(ctx context.Context, p sandbox.Provider) {
	d.Backends = append(d.Backends, p.Backends(ctx)...)
	chosen := ""
	for _, b := range d.Backends {
		if b.Chosen {
			chosen = b.Name
		}
	}
	for _, b := range d.Backends {
		if b.Usable || b.Name != "bwrap" {
			continue
		}
		remedy := ""
		if _, missing := lookAbsolute("bwrap"); missing {
			remedy = install("bubblewrap")
		} else if setting := blockedNamespaces(); setting != "" {
			remedy = setting
		}
		if chosen != "" {
			d.add(false, fmt.Sprintf("bwrap, which enforces more than %s, does not work: %s", chosen, b.Reason), remedy)
		} else {
			d.add(false, "bwrap does not work: "+b.Reason, remedy)
		}
	}
}

// try runs a command the way of every command.
func (d *diagnosis) try(ctx context.Context, registry tools.Registry) {
	arguments, err := json.Marshal(map[string]any{"command": `printf %s "$BASH_VERSION"`, "description": "dsh doctor"})
	if err != nil {
		d.add(true, err.Error(), "")
		return
	}
	result := registry.Execute(ctx, tools.Execution{CallID: "doctor", Name: "bash", Arguments: arguments})
	var r shell.Result
	switch {
	case result.Error != nil && result.Error.Code == sandbox.CodeUnavailable:
		_, reason, _ := strings.Cut(result.Error.Message, "Runner failure: ")
		d.add(true, "a command cannot be confined, and so is not run: "+reason, "mend one of the backends, or --set sandbox-policy.mode=danger-full-access")
		return
	case result.Error != nil:
		d.add(true, "a command cannot be run: "+result.Error.Message, "")
		return
	}
	if err := json.Unmarshal(result.Value, &r); err != nil {
		d.add(true, err.Error(), "")
		return
	}
	d.Command = &commandInfo{DurationMs: r.DurationMs, Range: r.Range, Sandbox: r.Sandbox}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		d.add(true, "a command failed: "+r.Stderr.Text, "")
		return
	}
	d.Shell.Version = r.Stdout.Text
	d.OK = true
}

// text returns what `dsh doctor` prints.
func (d *diagnosis) text() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", label, oneLine(fmt.Sprintf(format, args...)))
	}
	line("dsh", "%s, %s, %s", d.Version, d.Platform, d.Go)
	if d.Kernel != "" {
		line("kernel", "%s", d.Kernel)
	}
	line("home", "%s", d.Home)
	line("run", "%s", d.Run)
	line("profile", "%s", d.Profile)
	for i, l := range d.Layers {
		label := ""
		if i == 0 {
			label = "layers"
		}
		line(label, "%s", layerName(l.Name, l.File))
	}
	for i, r := range d.Ranges {
		label := ""
		if i == 0 {
			label = "range"
		}
		line(label, "%s %-7s %s", mark(r.Chosen, r.Chosen), r.Kind, r.Reason)
	}
	for i, s := range d.Backends {
		label, says := "", s.Reason
		if i == 0 {
			label = "sandbox"
		}
		if s.Usable {
			says = "works, enforcement " + string(s.Enforcement)
		}
		line(label, "%s %-8s %s", mark(s.Usable, s.Chosen), s.Name, says)
		for _, open := range s.NotEnforced {
			fmt.Fprintf(&b, "%-14snot enforced: %s\n", "", open)
		}
	}
	line("shell", "%s %s", d.Shell.Path, d.Shell.Version)
	if d.Command != nil {
		how := "unconfined"
		if s := d.Command.Sandbox; s != nil {
			how = string(s.Mode)
			if s.Backend != "" {
				how += " by " + s.Backend
			}
		}
		line("command", "ran in %d ms, range %s, %s", d.Command.DurationMs, d.Command.Range, how)
	}
	for _, p := range d.Problems {
		label := "note"
		if p.Grave {
			label = "PROBLEM"
		}
		line(label, "%s", p.Text)
		if p.Remedy != "" {
			line("", "-> %s", p.Remedy)
		}
	}
	return b.String()
}

// String returns the path, and whether it is of use.
func (p pathInfo) String() string {
	if p.Writable {
		return p.Path
	}
	return p.Path + " (cannot be written)"
}

// mark is a sign for what is in force, works, or does not.
func mark(works, chosen bool) string {
	switch {
	case chosen:
		return "*"
	case works:
		return "+"
	}
	return "-"
}
