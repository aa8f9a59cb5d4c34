package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"dsh/bundles/base"
	"dsh/cli"
	"dsh/internal/source"
	"dsh/module"
)

func build() cli.Build {
	return cli.Build{
		Bundles:  []module.Bundle{base.Bundle()},
		Profiles: []cli.Profile{{Name: "base", Bundles: []string{"base"}}},
	}
}

// run runs a command line in this process and returns what it printed on stdout.
func run(t *testing.T, b cli.Build, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cli.Run(b, args, &stdout, &stderr); code != 0 {
		t.Fatalf("dsh %s: exit status %d\n%s", strings.Join(args, " "), code, stderr.String())
	}
	return stdout.String()
}

// patchSchema is what `dsh config schema` prints, in the hands of a validator.
func patchSchema(t *testing.T, printed string) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("patch.json", text); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("patch.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// renditions are a patch as JSON: with expressions as dumps print them, and as the bare text that an editor sees.
func renditions(t *testing.T, name string, text []byte) map[string]any {
	t.Helper()
	n, err := source.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	var dumped any
	if err := json.Unmarshal(n.JSON(), &dumped); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"dumped": dumped, "bare": bare(dumped)}
}

func bare(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		return out
	case map[string]any:
		if text, ok := v["__jsExpr"]; ok {
			return text
		}
		out := map[string]any{}
		for k := range v {
			out[k] = bare(v[k])
		}
		return out
	}
	return v
}

func TestEveryPatchOfOursFitsTheSchema(t *testing.T) {
	printed, err := exec.CommandContext(t.Context(), program(t), "config", "schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	schema := patchSchema(t, string(printed))
	var files []string
	for _, pattern := range []string{"../cordis.patch.yaml", "../bundles/*/cordis.patch.yaml", "../examples/deployments/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for rendition, v := range renditions(t, file, text) {
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s, expressions %s: %v", file, rendition, err)
			}
		}
	}
}

func TestTheSchemaTakesWhatACheckTakes(t *testing.T) {
	schema := patchSchema(t, run(t, build(), "config", "schema"))
	for _, text := range []string{
		"", "[]", "null", "# nothing\n",
		"- {id: bash-local, disabled: false}\n- {id: bash-sandbox, disabled: true}",
		"- {id: bash-local, config: null}",
		"- {id: bash-local, name: bash-local, config: {timeoutMs: 5.0}}",
		"- {id: bash-local, name: '@deepseek-ai/dsh-bash-local', inject: [x], isolate: true}",
		"- {id: nowhere, optional: true, config: {a: 1}}",
		"- {id: bash-local, config: {timeoutMs: !!js 60 * 1000, cwd: !!js process.cwd(), survivors: !!js process.env.S}}",
		"- {id: bash-local, config: !!js '({})'}",
		"- {id: subprocess, config: {keepEnv: [A, !!js process.env.B, C]}}",
		"- insert: [{id: g, group: true, config: [{id: x, name: bash-local, disabled: true}, {id: h, group: true}]}]\n- {id: g, optional: true, insert: [{name: bash-local, disabled: true}]}",
		"- insert: []",
	} {
		file := filepath.Join(t.TempDir(), "p.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, build(), "--patch", file, "config", "check", "--env", "S=report", "--env", "B=b")
		for rendition, v := range renditions(t, "p.yaml", []byte(text)) {
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s, expressions %s: %v", text, rendition, err)
			}
		}
	}
}

func TestTheSchemaRefusesAtTheRightPlace(t *testing.T) {
	schema := patchSchema(t, run(t, build(), "config", "schema"))
	for _, c := range []struct{ patch, at, word string }{
		{"{id: bash-local}", "", "array"},
		{"- text", "/0", "object"},
		{"- {}", "/0", "id"},
		{"- {disabled: true}", "/0", "id"},
		{"- {id: bash-locl, disabled: true}", "/0/id", "bash-local"},
		{"- {id: 7}", "/0/id", "string"},
		{"- {id: bash-local, disabled: 'yes'}", "/0/disabled", "boolean"},
		{"- {id: bash-local, disable: true}", "/0", "disable"},
		{"- {id: bash-local, name: tool-bash}", "/0/name", "bash-local"},
		{"- {id: bash-local, optional: maybe}", "/0/optional", "boolean"},
		{"- {id: tool-bash}\n- {id: bash-local, config: {timeoutMS: 1}}", "/1/config", "timeoutMS"},
		{"- {id: bash-local, config: {timeoutMs: 5s}}", "/0/config/timeoutMs", "integer"},
		{"- {id: bash-local, config: {timeoutMs: '5000'}}", "/0/config/timeoutMs", "integer"},
		{"- {id: bash-local, config: {timeoutMs: 0}}", "/0/config/timeoutMs", "minimum"},
		{"- {id: bash-local, config: {timeoutMs: 1.5}}", "/0/config/timeoutMs", "integer"},
		{"- {id: bash-local, config: {survivors: kill}}", "/0/config/survivors", "terminate"},
		{"- {id: bash-local, config: [1]}", "/0/config", "object"},
		{"- {id: sandbox-policy, config: {mode: readonly}}", "/0/config/mode", "read-only"},
		{"- {id: sandbox, config: {network: no}}", "/0/config/network", "none"},
		{"- {id: subprocess, config: {keepEnv: A}}", "/0/config/keepEnv", "array"},
		{"- {id: subprocess, config: {keepEnv: [A, 7]}}", "/0/config/keepEnv/1", "string"},
		{"- {id: subprocess, config: {spillKeepDays: -1}}", "/0/config/spillKeepDays", "minimum"},
		{"- {id: tools, config: {a: 1}}", "/0/config", "a"},
		{"- insert: {id: a, name: bash-local}", "/0/insert", "array"},
		{"- insert:\n    - {id: a, name: bash-locall}", "/0/insert/0/name", "bash-local"},
		{"- insert:\n    - {id: a}", "/0/insert/0", "name"},
		{"- insert:\n    - {id: a, name: bash-local, config: {graceMs: true}}", "/0/insert/0/config/graceMs", "integer"},
		{"- insert:\n    - {id: g, group: true, config: [{id: a, name: bash-local, config: {cwd: 5}}]}", "/0/insert/0/config/0/config/cwd", "string"},
		{"- {id: mine, name: bash-local, config: {graceMs: none}}", "/0/config/graceMs", "integer"},
	} {
		for rendition, v := range renditions(t, "p.yaml", []byte(c.patch)) {
			err := schema.Validate(v)
			leaves := leavesOf(t, err)
			ok := slices.ContainsFunc(leaves, func(l leaf) bool { return l.at == c.at && strings.Contains(l.text, c.word) })
			elsewhere := slices.ContainsFunc(leaves, func(l leaf) bool { return l.at != c.at })
			if !ok || elsewhere {
				t.Errorf("%s, expressions %s: got %v, want one at %s with the word %s", c.patch, rendition, leaves, c.at, c.word)
			}
		}
	}
}

type leaf struct{ at, text string }

// leavesOf returns the causes of a refusal that have no further causes.
func leavesOf(t *testing.T, err error) (leaves []leaf) {
	t.Helper()
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		if err != nil {
			t.Fatal(err)
		}
		return nil
	}
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			at := ""
			for _, token := range e.InstanceLocation {
				at += "/" + token
			}
			leaves = append(leaves, leaf{at, e.ErrorKind.LocalizedString(message.NewPrinter(language.English))})
		}
		for _, cause := range e.Causes {
			visit(cause)
		}
	}
	visit(invalid)
	return leaves
}

func TestTheListedValuesAreThoseThatModulesTake(t *testing.T) {
	listed := 0
	for _, m := range base.Bundle().Modules {
		for i := range m.ConfigType().NumField() {
			f := m.ConfigType().Field(i)
			values, ok := f.Tag.Lookup("values")
			if !ok {
				continue
			}
			listed++
			config := reflect.New(m.ConfigType()).Elem()
			config.Set(reflect.ValueOf(m.DefaultConfig()))
			if !slices.Contains(strings.Split(values, ","), config.Field(i).String()) {
				t.Errorf("%s: the default of %s is not among %s", m.Name(), f.Name, values)
			}
			config.Field(i).SetString("nonsense")
			refusal := fmt.Sprint(m.Validate(config.Interface()))
			for value := range strings.SplitSeq(values, ",") {
				if !strings.Contains(refusal, value) {
					t.Errorf("%s refuses what is none of %s with %q", m.Name(), values, refusal)
				}
			}
		}
	}
	if listed == 0 {
		t.Error("no module lists values")
	}
}
