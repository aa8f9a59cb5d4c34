package compose_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/compose"
)

func layer(name, text string) compose.Layer {
	return compose.Parse(compose.Source{Name: name, File: name + ".yaml", Text: []byte(text)})
}

// fold folds texts as layers a, b, c and returns the rows in one line of JSON each.
func fold(t testing.TB, o compose.FoldOptions, texts ...string) ([]string, error) {
	t.Helper()
	var layers []compose.Layer
	for i, text := range texts {
		layers = append(layers, layer(string(rune('a'+i)), text))
	}
	rows, err := compose.Fold(layers, o)
	return lines(t, rows), err
}

func lines(t testing.TB, rows *compose.Rows) []string {
	t.Helper()
	text, err := rows.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, row := range list {
		var b strings.Builder
		for _, l := range strings.Split(string(row), "\n") {
			b.WriteString(strings.TrimSpace(l))
		}
		out = append(out, b.String())
	}
	return out
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{"no layer", nil, []string{}},
		{"empty layers", []string{"", "# nothing\n", "null\n", "[]\n"}, []string{}},
		{
			"an inserted row can be changed at once",
			[]string{"- insert: [{id: added, name: x}]\n- id: added\n  disabled: true\n"},
			[]string{`{"id": "added","name": "x","disabled": true}`},
		},
		{
			"config is replaced whole",
			[]string{"- insert: [{id: r, name: x, config: {a: 1, b: 2}}]\n", "- id: r\n  config: {c: 3}\n"},
			[]string{`{"id": "r","name": "x","config": {"c": 3}}`},
		},
		{
			"a null is stored",
			[]string{"- insert: [{id: r, name: x, config: {a: 1}}]\n", "- id: r\n  config: null\n"},
			[]string{`{"id": "r","name": "x","config": null}`},
		},
		{
			"the last layer wins",
			[]string{"- insert: [{id: r, name: x}]\n", "- id: r\n  disabled: true\n", "- id: r\n  disabled: false\n"},
			[]string{`{"id": "r","name": "x","disabled": false}`},
		},
		{
			"optional tolerates an unknown id, and is no key of the row",
			[]string{"- insert: [{id: r, name: x}]\n- id: nobody\n  optional: true\n  disabled: true\n- id: r\n  optional: true\n  disabled: true\n"},
			[]string{`{"id": "r","name": "x","disabled": true}`},
		},
		{
			"the same name is no mismatch",
			[]string{"- insert: [{id: r, name: x}]\n- id: r\n  name: x\n  config: {}\n"},
			[]string{`{"id": "r","name": "x","config": {}}`},
		},
		{
			"other keys pass through",
			[]string{"- insert: [{id: r, name: x, inject: [a], isolate: {b: true}}]\n- id: r\n  priority: 7\n"},
			[]string{`{"id": "r","name": "x","inject": ["a"],"isolate": {"b": true},"priority": 7}`},
		},
		{
			"rows in a group are changed by their own ids",
			[]string{"- insert: [{id: g, group: true, config: [{id: r, name: x}]}]\n", "- id: r\n  disabled: true\n- id: g\n  insert: [{id: s, name: y}]\n- id: s\n  config: {a: 1}\n"},
			[]string{`{"id": "g","group": true,"config": [{"id": "r","name": "x","disabled": true},{"id": "s","name": "y","config": {"a": 1}}]}`},
		},
		{
			"groups nest",
			[]string{"- insert: [{id: g, group: true, config: [{id: h, group: true, config: []}]}]\n- id: h\n  insert: [{id: r, name: x}]\n"},
			[]string{`{"id": "g","group": true,"config": [{"id": "h","group": true,"config": [{"id": "r","name": "x"}]}]}`},
		},
		{
			"replacing a group's config replaces its rows, whose ids are free again",
			[]string{"- insert: [{id: g, group: true, config: [{id: r, name: x}]}]\n- id: g\n  config: [{id: s, name: y}]\n- insert: [{id: r, name: z}]\n- id: s\n  disabled: true\n"},
			[]string{`{"id": "g","group": true,"config": [{"id": "s","name": "y","disabled": true}]}`, `{"id": "r","name": "z"}`},
		},
		{
			"an insert ignores its other keys",
			[]string{"- insert: [{id: r, name: x}]\n  comment: mine\n"},
			[]string{`{"id": "r","name": "x"}`},
		},
		{
			"an expression is kept as text",
			[]string{"- insert:\n  - id: r\n    name: x\n    disabled: !!js a === \"b\"\n    config: [!!js c]\n"},
			[]string{`{"id": "r","name": "x","disabled": {"__jsExpr": "a === \"b\""},"config": [{"__jsExpr": "c"}]}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := fold(t, compose.FoldOptions{}, c.texts...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestARowWithoutAnIDGetsTheSameOneEachTime(t *testing.T) {
	t.Parallel()
	text := "- insert: [{name: x}, {name: x}]\n"
	first, err := fold(t, compose.FoldOptions{}, text)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := fold(t, compose.FoldOptions{}, text)
	if !cmp.Equal(first, second) || len(first) != 2 || first[0] == first[1] {
		t.Errorf("got %q, then %q", first, second)
	}
}

func TestSkippedEntriesAreTold(t *testing.T) {
	t.Parallel()
	layers := []compose.Layer{layer("a", "- insert: [{id: r, name: x}]\n- id: r\n  name: y\n  disabled: true\n- id: q\n  disabled: true\n- {id: p, optional: true, disabled: true}\n")}
	rows, err := compose.Fold(layers, compose.FoldOptions{AllowUnknownIDs: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(t, rows), []string{`{"id": "r","name": "x"}`}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var slugs []string
	for _, d := range rows.Skipped() {
		slugs = append(slugs, d.Slug)
	}
	if want := []string{"name-mismatch", "unknown-id"}; !cmp.Equal(slugs, want) {
		t.Errorf("got %q, want %q", slugs, want)
	}
}

func TestWhatCouldBeFoldedIsThereWithFaults(t *testing.T) {
	t.Parallel()
	got, err := fold(t, compose.FoldOptions{}, "- insert: [{id: r, name: x}, {id: s, name: !foo y}]\n- id: t\n  a: 1\n- id: r\n  disabled: true\n- id: s\n  disabled: true\n")
	var faults *compose.Faults
	if !errors.As(err, &faults) || len(faults.Diagnostics()) != 2 {
		t.Errorf("got %v, want a fault for the tag and one for the id t", err)
	}
	if want := []string{`{"id": "r","name": "x","disabled": true}`}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnUnreadableLayerIsTheOnlyFaultForItsRows(t *testing.T) {
	t.Parallel()
	_, err := fold(t, compose.FoldOptions{}, "- insert: [{id: r, name: @x}]\n", "- id: r\n  disabled: true\n")
	var faults *compose.Faults
	if !errors.As(err, &faults) || len(faults.Diagnostics()) != 1 || faults.Diagnostics()[0].Slug != "yaml" {
		t.Errorf("got %v", err)
	}
}

func TestADumpLoadsAgainAsTheSameRows(t *testing.T) {
	t.Parallel()
	layers := []compose.Layer{
		layer("a", "- insert:\n  - {id: r, name: '@x/y', config: {t: \"a\\nb\\n\", u: !!js 'a ? {b: 1} : c', n: [1, {}, []]}}\n  - {id: g, group: true, config: [{id: s, name: y}]}\n"),
		layer("b", "- insert: [{id: t, name: z}]\n- id: s\n  disabled: !!js x\n- id: g\n  insert: [{id: u, name: v}]\n"),
	}
	rows, err := compose.Fold(layers, compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, origins := range []bool{false, true} {
		text, err := rows.YAML(compose.DumpOptions{Origins: origins})
		if err != nil {
			t.Fatal(err)
		}
		again, err := compose.Fold([]compose.Layer{layer("again", string(text))}, compose.FoldOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(lines(t, rows), lines(t, again)); d != "" {
			t.Errorf("%s\n%s", d, text)
		}
		if want := "# == a (a.yaml), patched by b\n"; !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
		if got := strings.Contains(string(text), "disabled: !!js x # b.yaml:3"); got != origins {
			t.Errorf("origins %v, but got %v in\n%s", origins, got, text)
		}
	}
}

var foldSeeds = []string{
	"- insert: [{id: r, name: x, config: {a: 1}}]\n", "- id: r\n  config: {b: !!js c}\n", "- id: r\n  group: true\n  config: [{id: s}]\n", "- id: s\n  insert: [1, {id: 7}]\n",
	"- insert: [{id: g, group: true, config: [{id: g}]}]\n", "- id: g\n  group: false\n", "- id: !foo r\n", "- insert: {}\n", "- id: nobody\n  optional: yes\n", "- &a {insert: [*a]}\n",
	"- &r {insert: [{id: q, name: bash-local, disabled: no, config: {timeoutMs: x, limits: {cpus: [], env: {a: 1}}}}]}\n- *r\n", "- insert: [{name: sandbox-policy, config: !!js '({mode: process.env.SECRET})'}]\n",
}

// FuzzFold takes three layers and a --set through every step up to the plan.
func FuzzFold(f *testing.F) {
	for i, s := range foldSeeds {
		f.Add(s, foldSeeds[(i+1)%len(foldSeeds)], foldSeeds[(i+2)%len(foldSeeds)], "r.a.b=[1]")
	}
	reg := modules(f)
	m := compose.Machine{Platform: "linux", Arch: "x64", Env: map[string]string{"SECRET": "hunter2hunter2"}, Dir: "/w", Home: "/h"}
	f.Fuzz(func(t *testing.T, a, b, c, set string) {
		if strings.Contains(a+b+c+set, "hunter2") {
			return
		}
		layers := []compose.Layer{layer("a", a), layer("b", b), layer("c", c)}
		layers = append(layers, compose.Load(compose.Inputs{Sets: []string{set}})...)
		for _, o := range []compose.FoldOptions{{}, {AllowUnknownIDs: true}} {
			rows, err := compose.Fold(layers, o)
			_ = lines(t, rows)
			text, _ := rows.YAML(compose.DumpOptions{Origins: true})
			if again, errAgain := compose.Fold([]compose.Layer{layer("again", string(text))}, o); err == nil {
				if errAgain != nil {
					t.Fatalf("%v\n%s", errAgain, text)
				}
				if d := cmp.Diff(lines(t, rows), lines(t, again)); d != "" {
					t.Errorf("%s\n%s", d, text)
				}
			}
			plan, err := compose.MakePlan(layers, reg, m, o)
			if (plan == nil) == (err == nil) {
				t.Errorf("got %v and %v", plan, err)
			}
			var faults *compose.Faults
			if err != nil && (!errors.As(err, &faults) || strings.Contains(faults.Report(), "hunter2hunter2")) {
				t.Errorf("got %T %v", err, err)
			}
		}
	})
}

func composition(rows, expressions int) compose.Layer {
	var b strings.Builder
	b.WriteString("- insert:\n")
	for i := range rows {
		fmt.Fprintf(&b, "    - id: row%d\n      name: stub\n      config:\n        timeoutMs: 60000\n        graceMs: %d\n        limits: {cpus: 2}\n", i, i+1)
		if i < expressions {
			b.WriteString("        cwd: !!js process.env.NOWHERE ?? process.cwd()\n")
		}
	}
	return layer("bench", b.String())
}

// TestTheCostOfAPlanIsLinear takes the best of several runs: a busy machine is no fault of the composer. How quick a plan
// is, the command bench measures.
func TestTheCostOfAPlanIsLinear(t *testing.T) {
	reg := modules(t)
	m := compose.Machine{Platform: "linux", Arch: "x64", Env: map[string]string{}, Dir: "/w", Home: "/h"}
	best := func(rows, expressions, runs int) time.Duration {
		shortest := time.Hour
		for range runs {
			begin := time.Now()
			if _, err := compose.MakePlan([]compose.Layer{composition(rows, expressions)}, reg, m, compose.FoldOptions{}); err != nil {
				t.Fatal(err)
			}
			shortest = min(shortest, time.Since(begin))
		}
		return shortest
	}
	few, many := best(50, 20, 40), best(1000, 400, 5)
	t.Logf("50 rows with 20 expressions: %v; 1,000 with 400: %v", few, many)
	if many > 20*few*4 { // what grows with the square takes 20 times as much
		t.Errorf("20 times as many rows take %v instead of %v: more than four times what is linear", many, few)
	}
}

func BenchmarkMakePlan(b *testing.B) {
	reg := modules(b)
	m := compose.Machine{Platform: "linux", Arch: "x64", Env: map[string]string{}, Dir: "/w", Home: "/h"}
	for _, c := range []struct{ rows, expressions int }{{6, 1}, {50, 20}, {1000, 400}} {
		b.Run(fmt.Sprintf("%d rows, %d expressions", c.rows, c.expressions), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compose.MakePlan([]compose.Layer{composition(c.rows, c.expressions)}, reg, m, compose.FoldOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
