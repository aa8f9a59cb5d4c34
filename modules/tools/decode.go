package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Decode returns the value of one JSON text, as encoding/json does into an any, with numbers as json.Number. It refuses
// what would not come out as it went in: bytes that are not UTF-8, half a surrogate pair, two members of one name,
// anything after the value.
func Decode(text json.RawMessage) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(text) { // also bounds the depth
		var v any
		return nil, json.Unmarshal(text, &v)
	}
	d := decoder{text: text}
	v := d.value()
	return v, d.err
}

// decoder reads a text that is known to be valid JSON: it looks for ends only, and fails for loss alone. After a failure
// it goes on, to no effect.
type decoder struct {
	text []byte
	at   int
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// next skips white space and returns the byte there.
func (d *decoder) next() byte {
	for {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return c
		}
	}
}

func (d *decoder) value() any {
	switch d.next() {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.string()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	}
	start := d.at
	for d.at < len(d.text) && numeric(d.text[d.at]) {
		d.at++
	}
	return json.Number(d.text[start:d.at])
}

func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (d *decoder) object() any {
	object := map[string]any{}
	d.at++
	for d.next() != '}' {
		name := d.string()
		d.next()
		d.at++ // the colon
		if _, twice := object[name]; twice {
			d.fail("two members are called %s", quote(name))
		}
		object[name] = d.value()
		if d.next() == ',' {
			d.at++
			d.next()
		}
	}
	d.at++
	return object
}

func (d *decoder) array() any {
	array := []any{}
	d.at++
	for d.next() != ']' {
		array = append(array, d.value())
		if d.next() == ',' {
			d.at++
		}
	}
	d.at++
	return array
}

func (d *decoder) string() string {
	start, escapes := d.at, false
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			escapes = true
			d.at++
		}
	}
	d.at++
	literal := d.text[start:d.at]
	if !escapes {
		return string(literal[1 : len(literal)-1])
	}
	d.surrogates(literal)
	var s string
	if err := json.Unmarshal(literal, &s); err != nil {
		d.fail("%w", err)
	}
	return s
}

// surrogates refuses \u escapes that are half a pair: encoding/json would replace them.
func (d *decoder) surrogates(literal []byte) {
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		i++
		if literal[i] != 'u' {
			continue
		}
		unit := escaped(literal[i+1:])
		i += 4
		if unit < 0xD800 || unit > 0xDFFF {
			continue
		}
		rest := literal[i+1:]
		if unit >= 0xDC00 || len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
			d.fail("half a surrogate pair: \\u%04x", unit)
			return
		}
		if low := escaped(rest[2:]); low < 0xDC00 || low > 0xDFFF {
			d.fail("half a surrogate pair: \\u%04x", unit)
			return
		}
		i += 6
	}
}

// escaped returns the code unit that four hexadecimal digits stand for.
func escaped(digits []byte) (unit int) {
	for _, c := range digits[:4] {
		switch {
		case c >= 'a':
			unit = unit<<4 | int(c-'a'+10)
		case c >= 'A':
			unit = unit<<4 | int(c-'A'+10)
		default:
			unit = unit<<4 | int(c-'0')
		}
	}
	return unit
}
