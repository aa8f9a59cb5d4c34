package approvalterminal

import "dsh/internal/visible"

// shown returns text, on lines of its own, in which nothing acts on a terminal or changes the order of what is read, and
// at most about most bytes of it.
func shown(text string, most int) string { return visible.Text(text, most, "\n          ", "    ") }
