package bashexec

import "unicode/utf8"

// text returns p as UTF-8. Each byte that does not belong to a character is U+FFFD.
func text(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	return string([]rune(string(p)))
}

// fromBoundary drops from the start of p what is left of a character that was cut.
func fromBoundary(p []byte) []byte {
	for n := range min(len(p), utf8.UTFMax) {
		if utf8.RuneStart(p[n]) {
			return p[n:]
		}
	}
	return p // four bytes without a start are no part of a character
}

// incomplete returns how many bytes at the end of p begin a character whose rest is missing.
func incomplete(p []byte) int {
	for n := 1; n <= min(len(p), utf8.UTFMax-1); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
