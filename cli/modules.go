package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"dsh/module"
)

// moduleInfo is a compiled-in module, as `dsh modules --json` prints it.
type moduleInfo struct {
	Name      string       `json:"name"`
	Aliases   []string     `json:"aliases"`
	Summary   string       `json:"summary"`
	Platforms []string     `json:"platforms"` // empty: all
	Provides  []string     `json:"provides"`
	Needs     []needInfo   `json:"needs"`
	Config    []configInfo `json:"config"`
}

type needInfo struct {
	Capability string `json:"capability"`
	Optional   bool   `json:"optional"`
}

type configInfo struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default any    `json:"default"`
	Doc     string `json:"doc"`
}

func (a *app) modulesCommand() *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "modules",
		Short: "list the modules that rows of this build can mount",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			registry, err := module.NewRegistry(a.build.Bundles...)
			if err != nil {
				return &runError{err}
			}
			infos := describe(registry)
			if asJSON {
				return a.printJSON(infos)
			}
			if asMarkdown {
				_, err := fmt.Fprint(a.stdout, markdown(infos))
				return err
			}
			for i, m := range infos {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				fmt.Fprint(a.stdout, m.text())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print a page for people")
	exclude(cmd, "json", "markdown")
	return cmd
}

func describe(registry *module.Registry) []moduleInfo {
	infos := []moduleInfo{}
	for _, m := range registry.Modules() {
		info := moduleInfo{
			Name: m.Name(), Aliases: append([]string{}, m.Aliases()...), Summary: m.Summary(),
			Platforms: append([]string{}, m.Platforms()...), Provides: []string{}, Needs: []needInfo{}, Config: []configInfo{},
		}
		for _, t := range m.Provides() {
			info.Provides = append(info.Provides, registry.Word(t))
		}
		for _, n := range m.Needs() {
			info.Needs = append(info.Needs, needInfo{registry.Word(n.Type), n.Optional})
		}
		for _, f := range configFields(reflect.ValueOf(m.DefaultConfig())) {
			info.Config = append(info.Config, configInfo{f.key, typeName(f.value.Type()), f.value.Interface(), f.doc})
		}
		infos = append(infos, info)
	}
	return infos
}

// typeName says what a config value is, in the words of a patch file.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map, reflect.Struct:
		return "map"
	}
	return "any value"
}

// text returns what `dsh modules` prints of one module.
func (m moduleInfo) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", m.Name, m.Summary)
	line := func(label string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(&b, "  %-10s %s\n", label, strings.Join(words, ", "))
		}
	}
	line("aliases", m.Aliases)
	line("platforms", m.Platforms)
	line("provides", m.Provides)
	line("needs", m.needs())
	for i, c := range m.Config {
		label := ""
		if i == 0 {
			label = "config"
		}
		value, err := json.Marshal(c.Default)
		if err != nil {
			value = []byte("?")
		}
		fmt.Fprintf(&b, "  %-10s %s: %s (%s) %s\n", label, c.Key, value, c.Type, c.Doc)
	}
	return b.String()
}

func (m moduleInfo) needs() (words []string) {
	for _, n := range m.Needs {
		word := n.Capability
		if n.Optional {
			word += ", if there is one"
		}
		words = append(words, word)
	}
	return words
}

// markdown returns the modules as a page.
func markdown(modules []moduleInfo) string {
	var b strings.Builder
	b.WriteString("# Modules\n\nWhat rows of this build can mount, as `dsh modules` lists it. A row without a setting has the default.\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, m := range modules {
		fmt.Fprintf(&b, "\n## %s\n\n", m.Name)
		if m.Summary != "" {
			fmt.Fprintf(&b, "%s%s.\n\n", strings.ToUpper(m.Summary[:1]), m.Summary[1:])
		}
		line := func(label string, words []string) {
			if len(words) > 0 {
				fmt.Fprintf(&b, "- %s: `%s`\n", label, strings.Join(words, "`, `"))
			}
		}
		line("Also called", m.Aliases)
		line("Platforms", m.Platforms)
		line("Provides", m.Provides)
		line("Needs", m.needs())
		if len(m.Config) == 0 {
			b.WriteString("- No settings.\n")
			continue
		}
		b.WriteString("\n| setting | type | default | what it is |\n|---|---|---|---|\n")
		for _, c := range m.Config {
			value, err := json.Marshal(c.Default)
			if err != nil {
				value = []byte("?")
			}
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", c.Key, c.Type, cell.Replace(string(value)), cell.Replace(c.Doc))
		}
	}
	return b.String()
}
