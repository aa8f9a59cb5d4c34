package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxExcerpt bounds a printed source line, in characters: a longer one is shown as a window around the token.
const maxExcerpt = 120

// Report returns the diagnostic as a person reads it: its first line, the source line with the one before it, a marker
// under the token, and the hint. It ends in a newline.
func (d *Diagnostic) Report() string {
	var b strings.Builder
	b.WriteString(d.Error() + "\n")
	if !d.excerpt(&b) && d.Hint != "" {
		b.WriteString("  " + strings.ReplaceAll(d.Hint, "\n", "\n  ") + "\n")
	}
	return b.String()
}

// ReportOf returns what a person reads of err: the reports of the diagnostics in it, a blank line between two, and a line
// for whatever else it joins.
func ReportOf(err error) string {
	switch e := err.(type) {
	case interface{ Report() string }:
		return e.Report()
	case interface{ Unwrap() []error }:
		var reports []string
		for _, err := range e.Unwrap() {
			reports = append(reports, ReportOf(err))
		}
		return strings.Join(reports, "\n")
	}
	return fmt.Sprintf("dsh: %v\n", err)
}

// excerpt writes the lines around the token, and reports whether there were any.
func (d *Diagnostic) excerpt(b *strings.Builder) bool {
	p := d.Place
	lines := strings.Split(strings.TrimPrefix(p.Text, "\ufeff"), "\n")
	if p.Text == "" || p.Line < 1 || p.Line > len(lines) {
		return false
	}
	gutter := max(5, len(fmt.Sprint(p.Line))+3)
	text, column := window(lines[p.Line-1], p.Column)
	if p.Line > 1 {
		if before, _ := window(lines[p.Line-2], 1); strings.TrimSpace(before) != "" {
			fmt.Fprintf(b, "%*d | %s\n", gutter, p.Line-1, before)
		}
	}
	fmt.Fprintf(b, "%*d | %s\n", gutter, p.Line, text)
	marker := strings.Repeat("^", max(1, min(p.Width, utf8.RuneCountInString(text)-column+1)))
	mark := strings.Repeat(" ", column-1) + marker
	if d.Hint != "" {
		mark += " " + d.Hint
	}
	more := fmt.Sprintf("\n%*s | %*s ", gutter, "", column-1+len(marker), "")
	fmt.Fprintf(b, "%*s | %s\n", gutter, "", strings.ReplaceAll(mark, "\n", more))
	return true
}

// window makes a line printable, every character one column wide, and cuts it around column.
func window(line string, column int) (string, int) {
	runes := []rune(strings.TrimSuffix(line, "\r"))
	for i, r := range runes {
		switch {
		case r == '\t':
			runes[i] = ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
			runes[i] = '\ufffd'
		}
	}
	column = min(max(column, 1), len(runes)+1)
	if len(runes) <= maxExcerpt {
		return strings.TrimRight(string(runes), " "), column
	}
	from := max(0, min(column-1-maxExcerpt/3, len(runes)-maxExcerpt))
	to := min(len(runes), from+maxExcerpt)
	out := runes[from:to]
	if from > 0 {
		out[0] = '…'
	}
	if to < len(runes) {
		out[len(out)-1] = '…'
	}
	return string(out), column - from
}
