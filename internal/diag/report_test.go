package diag_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/diag"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		d    diag.Diagnostic
		want string
	}{
		{"all of it", diag.Diagnostic{
			Place: diag.Place{File: "f", Line: 2, Column: 4, Width: 3, Text: "one\n - two\nthree\n"}, Row: "r", Slug: "s", Message: "wrong", Hint: "mend it",
		}, "f:2:4: row \"r\": wrong [s]\n    1 | one\n    2 |  - two\n      |    ^^^ mend it\n"},
		{"nowhere", diag.Diagnostic{Message: "wrong", Hint: "mend it"}, "wrong\n  mend it\n"},
		{"a source as a whole", diag.Diagnostic{Place: diag.Place{File: "f", Text: "one\n"}, Message: "wrong"}, "f: wrong\n"},
		{"a blank line before", diag.Diagnostic{Place: diag.Place{File: "f", Line: 2, Column: 1, Text: " \nx\n"}, Message: "m"}, "f:2:1: m\n    2 | x\n      | ^\n"},
		{"a line number of four digits", diag.Diagnostic{
			Place: diag.Place{File: "f", Line: 1000, Column: 1, Width: 1, Text: strings.Repeat("x\n", 1000)}, Message: "m",
		}, "f:1000:1: m\n    999 | x\n   1000 | x\n        | ^\n"},
		{"tabs, carriage returns and controls", diag.Diagnostic{
			Place: diag.Place{File: "f", Line: 1, Column: 4, Width: 2, Text: "\ta\x1bbc\r\n"}, Message: "m",
		}, "f:1:4: m\n    1 |  a\ufffdbc\n      |    ^^\n"},
		{"a marker does not leave the line", diag.Diagnostic{Place: diag.Place{File: "f", Line: 1, Column: 2, Width: 99, Text: "äöü"}, Message: "m"}, "f:1:2: m\n    1 | äöü\n      |  ^^\n"},
		{"a place behind the line", diag.Diagnostic{Place: diag.Place{File: "f", Line: 1, Column: 99, Text: "ab"}, Message: "m"}, "f:1:99: m\n    1 | ab\n      |   ^\n"},
		{"a place behind the text", diag.Diagnostic{Place: diag.Place{File: "f", Line: 9, Column: 1, Text: "ab"}, Message: "m", Hint: "h"}, "f:9:1: m\n  h\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, c.d.Report()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALongLineIsShownAroundTheToken(t *testing.T) {
	t.Parallel()
	d := diag.Diagnostic{Place: diag.Place{File: "f", Line: 1, Column: 501, Width: 5, Text: strings.Repeat("a", 500) + "TOKEN" + strings.Repeat("b", 500)}, Message: "m"}
	lines := strings.Split(d.Report(), "\n")
	at := strings.Index(lines[2], "^^^^^")
	shown, marked := []rune(lines[1]), []rune(lines[2])
	if at < 0 || string(shown[len(marked)-5:len(marked)]) != "TOKEN" || len(shown) > 140 {
		t.Errorf("got\n%s\n%s", lines[1], lines[2])
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	candidates := []string{"timeoutMs", "maxTimeoutMs", "graceMs", "cwd", "bash-local", "bash-sandbox"}
	for name, want := range map[string]string{
		"timeoutMS": "timeoutMs", "timeout_ms": "timeoutMs", "timeoutSec": "timeoutMs", "gracems": "graceMs", "cdw": "cwd", "bash-lcoal": "bash-local",
		"bash-sandbxo": "bash-sandbox", "bash": "", "image": "", "": "", "x": "", "cwd": "",
	} {
		if got := diag.Nearest(name, candidates); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := diag.Nearest("a", nil); got != "" {
		t.Errorf("of nothing: got %q", got)
	}
}
