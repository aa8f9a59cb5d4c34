package agentloop

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// spillHint tells a model what to do with a file that holds a result.
const spillHint = "Look at the parts that you need with sed -n or grep."

// gap is where the middle of a result was.
const gap = "\n[...]\n"

// spill writes text to a file and returns what a model gets in its place, which is no longer than a result may be: the
// beginning, the end, and where the whole is. When there is no file it gets the text as it is.
func (t *turn) spill(tool, text string) (shown, path string) {
	path, err := t.store(tool, text)
	if err != nil {
		t.log.Warn("a long tool result stays inline", "tool", tool, "bytes", len(text), "error", err)
		return text, ""
	}
	notice := func(omitted int) string {
		return fmt.Sprintf("\n\n(Omitted %d bytes. Full formatted result stored at: %s. %s)", omitted, path, spillHint)
	}
	room := t.config.MaxInlineBytes - len(notice(len(text)))
	if room <= len(gap) {
		t.log.Warn("a long tool result stays inline: its notice is too long", "tool", tool, "bytes", len(text))
		return text, path
	}
	room -= len(gap)
	head, tail := beginning(text, room-room/2), end(text, room/2)
	return head + gap + tail + notice(len(text)-len(head)-len(tail)), path
}

func (t *turn) store(tool, text string) (path string, err error) {
	f, err := t.files.CreateSpill(plain(tool) + "-" + newID()[:12] + "-result.txt")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), errors.Join(err, f.Close())
}

// plain returns name as a part of a file's name.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name[:min(len(name), 40)])
}

// beginning returns at most n bytes of the beginning of text, without a part of a character.
func beginning(text string, n int) string {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:min(n, len(text))]
}

// end returns at most n bytes of the end of text, without a part of a character.
func end(text string, n int) string {
	from := max(len(text)-n, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}
