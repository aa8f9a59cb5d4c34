package llmopenai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Servers that cut text by UTF-16 units put the halves of a character into two pieces, each a JSON escape that Go's decoder
// would turn into U+FFFD. markHalves lets them through as characters of a private area, and halves joins them again.
const (
	halfBase = 0x10F000 // the character that stands for the half 0xD800
	halves16 = 0x800    // how many halves there are
)

// markHalves returns a JSON text with lone halves replaced by what stands for them.
func markHalves(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw
	}
	marked := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		r, is := escaped(raw[i:])
		switch {
		case !is && raw[i] == '\\' && i+1 < len(raw): // an escape of another kind, such as a backslash
			marked = append(marked, raw[i:i+2]...)
			i += 2
		case !is:
			marked = append(marked, raw[i])
			i++
		case !utf16.IsSurrogate(r):
			marked = append(marked, raw[i:i+6]...)
			i += 6
		default:
			if low, follows := escaped(raw[i+6:]); follows && utf16.DecodeRune(r, low) != utf8.RuneError {
				marked = append(marked, raw[i:i+12]...)
				i += 12
				continue
			}
			marked = utf8.AppendRune(marked, halfBase+r-0xD800)
			i += 6
		}
	}
	return marked
}

// escaped returns the UTF-16 unit that text begins with, if it is written as \uXXXX.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(unit), err == nil
}

// halves keeps, for each block, the first half of a character whose second has not come yet.
type halves map[int]rune

// join returns text, which is the next piece of block at, with halves joined; a last one waits for the next piece.
func (h halves) join(at int, text string) string {
	pending, waits := h[at]
	if !waits && !strings.ContainsFunc(text, func(r rune) bool { return half(r) != 0 }) {
		return text
	}
	delete(h, at)
	var b strings.Builder
	for _, r := range text {
		unit := half(r)
		if pending != 0 {
			joined := utf16.DecodeRune(pending, unit) // U+FFFD if they do not belong together
			b.WriteRune(joined)
			pending = 0
			if joined != utf8.RuneError {
				continue
			}
		}
		switch {
		case unit == 0:
			b.WriteRune(r)
		case unit < 0xDC00:
			pending = unit
		default:
			b.WriteRune(utf8.RuneError)
		}
	}
	if pending != 0 && text == "" {
		b.WriteRune(utf8.RuneError)
	} else if pending != 0 {
		h[at] = pending
	}
	return b.String()
}

// half returns the half that r stands for, or 0.
func half(r rune) rune {
	if r < halfBase || r >= halfBase+halves16 {
		return 0
	}
	return r - halfBase + 0xD800
}
