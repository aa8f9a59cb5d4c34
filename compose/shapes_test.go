package compose_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/compose"
	"dsh/module"
)

// size is written as text, whatever it is made of.
type size struct{ bytes int }

func (s *size) UnmarshalText(text []byte) error {
	if !strings.HasSuffix(string(text), "k") {
		return errors.New("a size ends in k")
	}
	s.bytes = 1000 * len(text)
	return nil
}

type shared struct {
	Common string `koanf:"common"`
}

type oddConfig struct {
	Shared  shared            `koanf:",squash"`
	Pointer *int              `koanf:"pointer"`
	Inner   *shared           `koanf:"inner"`
	List    []shared          `koanf:"list"`
	Map     map[string]shared `koanf:"map"`
	Any     any               `koanf:"any"`
	Small   int8              `koanf:"small"`
	Count   uint16            `koanf:"count"`
	Size    size              `koanf:"size"`
	Lists   [][]int           `koanf:"lists"`
	Hidden  string            `koanf:"-"`
}

func oddPlan(t *testing.T, config string) (*compose.Plan, error) {
	t.Helper()
	return compose.MakePlan([]compose.Layer{layer("a", "- insert:\n  - id: odd\n    name: odd\n    config: "+config+"\n")}, oddRegistry(t), linux(), compose.FoldOptions{})
}

func oddRegistry(t *testing.T) *module.Registry {
	t.Helper()
	reg, err := module.NewRegistry(module.Bundle{Modules: []module.Module{module.Define(module.Spec[oddConfig]{
		Name: "odd",
		Default: func() oddConfig {
			return oddConfig{
				Shared: shared{"s"}, Inner: &shared{"i"}, List: []shared{{"a"}, {"b"}}, Map: map[string]shared{"k": {"v"}}, Count: 7, Size: size{1}, Hidden: "h",
			}
		},
		Constructor: func(oddConfig) error { return nil },
	})}})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestEveryShapeOfConfigIsDecoded(t *testing.T) {
	t.Parallel()
	seven := 7
	for text, want := range map[string]oddConfig{
		"{common: x}": {
			Shared: shared{"x"}, Inner: &shared{"i"}, List: []shared{{"a"}, {"b"}}, Map: map[string]shared{"k": {"v"}}, Count: 7, Size: size{1}, Hidden: "h",
		},
		"{pointer: 7, inner: {common: y}, list: [{common: z}], map: {l: {common: m}}, any: {a: [1, x]}, small: -128, count: 65535, size: 12k, lists: [[1], []]}": {
			Shared: shared{"s"}, Pointer: &seven, Inner: &shared{"y"}, List: []shared{{"z"}}, Map: map[string]shared{"k": {"v"}, "l": {"m"}},
			Any: map[string]any{"a": []any{1, "x"}}, Small: -128, Count: 65535, Size: size{3000}, Lists: [][]int{{1}, {}}, Hidden: "h",
		},
	} {
		p, err := oddPlan(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, config(t, p, "odd"), cmp.AllowUnexported(size{})); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestFaultsInEveryShapeOfConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{small: 128}": "small must be an integer of at most 8 bits, got 128", "{count: -1}": "count must be 0 or more, got -1",
		"{count: 65536}": "count must be an integer of at most 16 bits", "{size: 12}": "size must be text, got 12", "{size: x}": "a size ends in k",
		"{inner: {comon: x}}": `unknown config key "inner.comon"`, "{list: [{}, {x: 1}]}": `unknown config key "list[1].x"`,
		"{map: {a: {b: 1}}}": `unknown config key "map.a.b"`, "{Hidden: x}": `unknown config key "Hidden"`, "{shared: {}}": `unknown config key "shared"`,
		"{lists: [[1], [x]]}": `lists[1][0] must be an integer, got "x"`, "{pointer: x}": `pointer must be an integer, got "x"`,
	} {
		_, err := oddPlan(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.yaml:") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
