// Package visible makes text from elsewhere harmless to read on a terminal.
package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// Text returns about the first most bytes of text with every character made visible that acts on a terminal or changes the
// order of what is read. A line's end becomes newline, a tab becomes tab.
func Text(text string, most int, newline, tab string) string {
	var b strings.Builder
	for i, r := range text {
		if i >= most {
			fmt.Fprintf(&b, " [%d more bytes]", len(text)-i)
			break
		}
		switch {
		case r == '\n':
			b.WriteString(newline)
		case r == '\t':
			b.WriteString(tab)
		case r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is Text on one line: an end of line is shown as \n.
func Line(text string, most int) string { return Text(text, most, `\n`, `\t`) }

// Output returns text with its control characters made visible, but for ends of line and tabs. It is for text that is to
// be kept whole, with the marks of its writing system, and that some command or model wrote.
func Output(text string) string {
	acts := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if acts(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
