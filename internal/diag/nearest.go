package diag

// Nearest returns the candidate that name was most likely meant to be, or "" when none is near: at most a third of its
// characters differ, a swap of two neighbours counting as one and a difference in case as none.
func Nearest(name string, candidates []string) string {
	best, bestAt := "", len([]rune(name))/3+1
	for _, c := range candidates {
		if c == name || c == "" {
			continue
		}
		if d := distance(fold(name), fold(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// fold drops what people vary without meaning to: case, and the separators between words.
func fold(s string) []rune {
	var out []rune
	for _, r := range s {
		switch {
		case r == '-' || r == '_' || r == ' ':
		case r >= 'A' && r <= 'Z':
			out = append(out, r+'a'-'A')
		default:
			out = append(out, r)
		}
	}
	return out
}

// distance is the optimal string alignment distance.
func distance(a, b []rune) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
