// Package diag holds what a person reads when something is wrong: a Diagnostic, which says where, in which row, what,
// and what to do about it, and a List of errors of equal standing.
package diag

import (
	"fmt"
	"strings"
)

// Place is a token in a source that a user wrote. The zero Place is nowhere.
type Place struct {
	File   string // as the user would name it
	Line   int    // from 1; 0 means the source as a whole
	Column int    // from 1, in characters
	Width  int    // of the token, in characters; 0 marks one
	Text   string // the whole source, which the excerpt is cut from; empty means no excerpt
}

// String returns file:line:column, or the file alone for a source as a whole.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Diagnostic is one fault that a user can mend. It is an error; Error is its first line and Report the whole.
type Diagnostic struct {
	Place   Place
	Row     string // the row's id; empty when no row is concerned
	Slug    string // stable name of the kind of fault, explained in docs/errors.md
	Message string // one sentence, lower case, no full stop
	Hint    string // what to do; empty when nothing is known
}

// Error returns `file:line:col: row "id": message [slug]`, each part only where there is one.
func (d *Diagnostic) Error() string {
	var b strings.Builder
	if at := d.Place.String(); at != "" {
		b.WriteString(at + ": ")
	}
	if d.Row != "" {
		fmt.Fprintf(&b, "row %q: ", d.Row)
	}
	b.WriteString(d.Message)
	if d.Slug != "" {
		fmt.Fprintf(&b, " [%s]", d.Slug)
	}
	return b.String()
}
