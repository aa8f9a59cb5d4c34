package source_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/diag"
	"dsh/internal/source"
)

func parse(t testing.TB, text string) *source.Node {
	t.Helper()
	n, err := source.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func TestScalarsFollowTheJSONSchema(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"off": "off", "no": "no", "yes": "yes", "on": "on", "True": "True", "12:30": "12:30", "0755": "0755", "0o17": "0o17", "0x1F": "0x1F",
		"1_000": "1_000", "+1": "+1", ".5": ".5", ".inf": ".inf", ".NaN": ".NaN", "~": "~", "Null": "Null", "2001-01-01": "2001-01-01", "1e": "1e",
		"null": nil, "": nil, "true": true, "false": false, "0": 0, "-7": -7, "12": 12, "1.5": 1.5, "1.": 1.0, "1e3": 1000.0, "-1.5E-2": -0.015,
		"9223372036854775807": 9223372036854775807, "9223372036854775808": 9223372036854775808.0, "1e999": "1e999", "64k": "64k", "-": "-",
		"'12'": "12", `"true"`: "true", "''": "", "'null'": "null", "|\n  12": "12\n", ">-\n  a\n  b": "a b",
	} {
		if text == "-" {
			text = "'-'"
		}
		if got := parse(t, "a: "+text+"\n").Get("a").Go(); !cmp.Equal(got, want) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
	}
}

func TestTextWithABOMAndCarriageReturnsIsRead(t *testing.T) {
	t.Parallel()
	n := parse(t, "\ufeff- id: a\r\n  text: |\r\n    x\r\n    y\r\n- id: 'b'\r\n")
	if len(n.Items) != 2 || n.Items[0].Get("text").Raw != "x\ny\n" {
		t.Fatalf("got %v", n.Go())
	}
	if p := n.Items[1].Get("id").Place; p.Line != 5 || p.Column != 7 || p.Width != 3 {
		t.Errorf("got %v, %d wide", p, p.Width)
	}
}

func TestEmptyTextIsNull(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# only this\n", "null\n", "---\n", "\ufeff", "---\n...\n"} {
		if n := parse(t, text); n.Kind != source.Null {
			t.Errorf("%q: got %v", text, n.Kind)
		}
	}
}

func TestPlacesAreCountedInCharacters(t *testing.T) {
	t.Parallel()
	n := parse(t, "ä: {ö: 'ü', x: !!js a === b, y: \"q\\\"\"} # c\n")
	for path, want := range map[string]string{"ö": "1:8+3", "x": "1:16+12", "y": "1:33+5"} {
		p := n.Get("ä").Get(path).Place
		if got := fmt.Sprintf("%d:%d+%d", p.Line, p.Column, p.Width); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestAliasesShareTheirValue(t *testing.T) {
	t.Parallel()
	n := parse(t, "- &a {x: [1, !!js y]}\n- *a\n- &k key\n- *k : v\n")
	if n.Items[0] != n.Items[1] || n.Items[3].Get("key").Raw != "v" {
		t.Errorf("got %v", n.Go())
	}
}

func TestTenThousandAliasedNodesAreReadAndNoMore(t *testing.T) {
	t.Parallel()
	list := "- &a [" + strings.Repeat("x, ", 98) + "x]\n"
	if n := parse(t, list+strings.Repeat("- *a\n", 100)); len(n.Items) != 101 {
		t.Errorf("got %d items", len(n.Items))
	}
	_, err := source.Parse("f.yaml", []byte(list+strings.Repeat("- *a\n", 101)))
	if d, ok := errors.AsType[*diag.Diagnostic](err); !ok || d.Slug != "alias" || d.Place.Line != 102 {
		t.Errorf("got %v", err)
	}
}

func TestManyNodesWithoutAliasesAreRead(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	if n := parse(t, b.String()+"k7: again\n"); len(n.Fields) != 30_001 || len(n.Faults()) != 1 {
		t.Errorf("got %d fields, %v", len(n.Fields), n.Faults())
	}
}

func TestAFaultLeavesTheRestReadable(t *testing.T) {
	t.Parallel()
	n := parse(t, "- a: !!binary x\n  b: 1\n- <<: {}\n  c: 2\n- d: 3\n  d: 4\n- !foo [x]\n- 5\n")
	var slugs []string
	for _, d := range n.Faults() {
		slugs = append(slugs, d.Slug)
	}
	if got := strings.Join(slugs, " "); got != "tag merge-key duplicate-key tag" {
		t.Errorf("got %s", got)
	}
	if n.Items[0].Get("b").Value != 1 || n.Items[1].Get("c").Value != 2 || n.Items[4].Value != 5 || len(n.Items[4].Faults()) != 0 {
		t.Errorf("got %v", n.Go())
	}
}

func TestWithChangesNothingElse(t *testing.T) {
	t.Parallel()
	n := parse(t, "a: {b: 1, c: 2}\nd: null\n")
	seven, place := source.Of(7, diag.Place{}, false), diag.Place{File: "--set"}
	got := n.With([]string{"a", "b"}, place, seven).With([]string{"d", "e"}, place, seven).With([]string{"f"}, place, seven)
	want := map[string]any{"a": map[string]any{"b": 7, "c": 2}, "d": map[string]any{"e": 7}, "f": 7}
	if d := cmp.Diff(want, got.Go()); d != "" {
		t.Error(d)
	}
	if n.Get("a").Get("b").Value != 1 || len(n.Fields) != 2 {
		t.Errorf("the original changed: %v", n.Go())
	}
	if n.With([]string{"a", "b", "c"}, place, seven) != nil {
		t.Error("a path through a number was taken")
	}
}

// show returns a map's or list's text.
func show(n *source.Node) string {
	var w source.Writer
	w.Field(source.Field{Key: "v", Value: n}, 0)
	return w.String()
}

func TestWhatIsPrintedReadsTheSame(t *testing.T) {
	t.Parallel()
	for _, text := range append(seeds, "- 'yes'\n- \"a\\tb\\u0007\\u2028\"\n- 'x: y'\n- ' lead'\n- \"tail \\n\"\n- \"a\\n\\n  b\\n\"\n- '#'\n- !!js '{a: 1}'\n- !!js |\n  a\n  b\n- ''\n- '1e3'\n") {
		n, err := source.Parse("f.yaml", []byte(text))
		if err != nil || len(n.Faults()) > 0 {
			continue
		}
		printed := show(n)
		again := parse(t, printed).Get("v")
		if d := cmp.Diff(string(n.JSON()), string(again.JSON())); d != "" {
			t.Errorf("%q printed as\n%s\n%s", text, printed, d)
		}
	}
}

var seeds = []string{
	"", "[]\n", "- insert:\n    - id: a\n      name: '@x/y'\n      disabled: !!js process.platform === 'win32'\n      config: {a: [1, 2.5, null, true, off]}\n",
	"- id: a\n  config: &c {x: 1}\n- id: b\n  config: *c\n", "- <<: {}\n", "- a: 1\n  a: 2\n", "\ufeff- a: b\r\n", "# c\n[]\n- id: x\n", "- id: @x\n", "a: b\n---\nc\n",
	"- |\n  literal\n   more\n\n  end\n- >-\n  folded\n  text\n", "- ? [a]\n  : b\n", "- !!binary eA==\n", "- \"\\x07\"\n", "- [a, b\n", "- 'open\n", "- &a [*a]\n", "%YAML 1.1\n---\n- x\n",
	"- \t- x\n", "- !!js\n- !!js 'a: b'\n", "- {a: {b: {c: [[[]]]}}}\n", "- ä: ü # ö\n", "- \u2028\n", "\xff\xfe", "- *x\n", "...\n", "- 9223372036854775808\n- -0\n- 1e400\n",
}

func FuzzPatch(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := source.Parse("f.yaml", text)
		if err != nil {
			d, ok := errors.AsType[*diag.Diagnostic](err)
			if !ok || d.Slug == "" || d.Message == "" || strings.Contains(d.Message, "yaml:") || strings.Contains(d.Message, "\n") {
				t.Fatalf("got %#v", err)
			}
			_ = d.Report()
			return
		}
		for _, d := range n.Faults() {
			if d.Place.Line < 1 || d.Place.Column < 1 || d.Place.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+strings.Count(string(text), "\u0085")+1 {
				t.Errorf("%v is nowhere", d)
			}
			_ = d.Report()
		}
		if len(n.Faults()) > 0 {
			return
		}
		printed := show(n)
		again, err := source.Parse("again.yaml", []byte(printed))
		if err != nil {
			t.Fatalf("%q printed as\n%s\n%v", text, printed, err)
		}
		if d := cmp.Diff(string(n.JSON()), string(again.Get("v").JSON())); d != "" {
			t.Errorf("%q printed as\n%s\n%s", text, printed, d)
		}
	})
}
