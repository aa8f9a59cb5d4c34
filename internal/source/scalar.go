package source

import (
	"math"
	"strconv"
	"strings"
)

// resolve returns what a plain scalar is by the JSON schema of YAML 1.2. Where the schema would refuse it, it is text.
func resolve(raw string) (Kind, any) {
	switch raw {
	case "", "null":
		return Null, nil
	case "true":
		return Bool, true
	case "false":
		return Bool, false
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return Text, raw
	}
	integral, ok := number(raw)
	if !ok {
		return Text, raw
	}
	if integral {
		if i, err := strconv.Atoi(raw); err == nil {
			return Int, i
		}
	}
	if f, err := strconv.ParseFloat(raw, 64); err == nil && !math.IsInf(f, 0) {
		return Float, f
	}
	return Text, raw
}

// number reports whether raw is a number as the schema writes it, -?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?, and
// whether it is one without fraction and exponent.
func number(raw string) (integral, ok bool) {
	rest := strings.TrimPrefix(raw, "-")
	whole := digits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return false, false
	}
	if rest = rest[whole:]; rest == "" {
		return true, true
	}
	if rest[0] == '.' {
		rest = rest[1+digits(rest[1:]):]
	}
	if rest == "" {
		return false, true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false, false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	return false, rest != "" && digits(rest) == len(rest)
}

// digits counts those that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
