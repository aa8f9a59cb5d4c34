package tools

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// number is digits × 10^exponent, with neither leading nor trailing zeros in digits: equal numbers have equal fields,
// whatever their size. Zero has no digits.
type number struct {
	negative bool
	digits   string
	exponent int64
}

// parse takes the literal of a JSON number apart.
func parse(n json.Number) number {
	mantissa, power, _ := strings.Cut(strings.ToLower(string(n)), "e")
	var p number
	mantissa, p.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	p.digits = strings.TrimLeft(whole+fraction, "0")
	if p.digits == "" {
		return number{}
	}
	if power != "" {
		// Out of range, ParseInt returns the nearest value there is; half of that leaves room for what is added.
		e, _ := strconv.ParseInt(power, 10, 64)
		p.exponent = min(max(e, math.MinInt64/2), math.MaxInt64/2)
	}
	p.exponent -= int64(len(fraction))
	trimmed := strings.TrimRight(p.digits, "0")
	p.exponent += int64(len(p.digits) - len(trimmed))
	p.digits = trimmed
	return p
}

// integral reports whether n has no fraction: 1.0 and 1e3 have none.
func integral(n json.Number) bool { return parse(n).exponent >= 0 }

// finite reports whether n fits the range of a double, which is what the other users of the protocol hold it in.
func finite(n json.Number) bool {
	_, err := strconv.ParseFloat(string(n), 64)
	return !errors.Is(err, strconv.ErrRange)
}
