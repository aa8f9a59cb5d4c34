package visible_test

import (
	"testing"

	"dsh/internal/visible"
)

func TestLineShowsWhatWouldActOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ls -l":                 "ls -l",
		"a\nb\tc\rd":            `a\nb\tc\u000dd`,
		"\x1b[2K\x1b[1Aallowed": `\u001b[2K\u001b[1Aallowed`,
		"\u202egnp.exe\u2028":   `\u202egnp.exe\u2028`,
		"\x9b2J":                `\ufffd2J`,
		"grüße 漢字":              "grüße 漢字",
		"0123456789":            "01234567 [2 more bytes]",
	} {
		most := 100
		if text == "0123456789" {
			most = 8
		}
		if got := visible.Line(text, most); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestOutputShowsWhatWouldActOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"a\n\tb\n":                      "a\n\tb\n",
		"10%\r50%\n":                    `10%\u000d50%` + "\n",
		"\x1b[31mred\x1b]0;t\a\u009b2J": `\u001b[31mred\u001b]0;t\u0007\u009b2J`,
		"a\x00b\x7f":                    `a\u0000b\u007f`,
		"grüße 👩\u200d🚀 \u200fשלום":     "grüße 👩\u200d🚀 \u200fשלום",
	} {
		if got := visible.Output(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
