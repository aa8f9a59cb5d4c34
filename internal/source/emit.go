package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Writer prints nodes as YAML in block style. What it prints parses to the same nodes.
type Writer struct {
	bytes.Buffer
	Comment func(f Field) string // what to say behind a field; nil or "": nothing
}

// Field prints one key and its value at an indentation; the cursor is behind the indentation already.
func (w *Writer) Field(f Field, indent int) {
	w.WriteString(text(f.Key, false) + ":")
	comment := ""
	if w.Comment != nil {
		comment = w.Comment(f)
	}
	w.value(f.Value, indent, comment)
}

// value prints what comes behind "key:" or "-", newline included.
func (w *Writer) value(n *Node, indent int, comment string) {
	if comment != "" {
		comment = " # " + comment
	}
	switch {
	case n.Kind == List && len(n.Items) > 0:
		w.WriteString(comment + "\n")
		for _, item := range n.Items {
			w.pad(indent + 2)
			w.Item(item, indent+2)
		}
	case n.Kind == Map && len(n.Fields) > 0:
		w.WriteString(comment + "\n")
		for _, f := range n.Fields {
			w.pad(indent + 2)
			w.Field(f, indent+2)
		}
	default:
		head, block := scalar(n)
		w.WriteString(" " + head + comment + "\n")
		for _, line := range block {
			if line != "" {
				w.pad(indent + 2)
			}
			w.WriteString(line + "\n")
		}
	}
}

// Item prints one item of a list, its dash included.
func (w *Writer) Item(n *Node, indent int) {
	w.WriteString("-")
	if n.Kind != Map || len(n.Fields) == 0 {
		w.value(n, indent, "")
		return
	}
	for i, f := range n.Fields {
		if i == 0 {
			w.WriteString(" ")
		} else {
			w.pad(indent + 2)
		}
		w.Field(f, indent+2)
	}
}

func (w *Writer) pad(n int) { w.WriteString(strings.Repeat(" ", n)) }

// scalar returns a scalar in one line, or the head of a block scalar and its lines.
func scalar(n *Node) (head string, block []string) {
	switch n.Kind {
	case Expr:
		if head, block := literal(n.Raw); block != nil {
			return "!!js " + head, block
		}
		return "!!js " + text(n.Raw, true), nil
	case Text:
		if head, block := literal(n.Raw); block != nil {
			return head, block
		}
		return text(n.Raw, false), nil
	case List:
		return "[]", nil
	case Map:
		return "{}", nil
	case Null, Fault:
		return "null", nil
	}
	return n.Raw, nil
}

// literal returns text of several lines as a literal block, if it can be one.
func literal(s string) (head string, lines []string) {
	body := strings.TrimRight(s, "\n")
	if !strings.Contains(body, "\n") || strings.ContainsAny(body[:1], " \t\n#") || len(s)-len(body) > 1 || unprintable(s) {
		return "", nil
	}
	lines = strings.Split(body, "\n")
	for _, l := range lines {
		if l != "" && strings.TrimSpace(l) == "" {
			return "", nil
		}
	}
	if body == s {
		return "|-", lines
	}
	return "|", lines
}

var (
	plainText  = lazily(`^[A-Za-z_./$][-A-Za-z0-9_./$@+~=()]*( [-A-Za-z0-9_./$@+~=()]+)*$`)
	plainExpr  = lazily("^[A-Za-z_$(]([^\x00-\x1f]*[^ :\x00-\x1f])?$")
	ambiguous  = lazily(`(?i)^(null|true|false|yes|no|on|off|y|n|\.inf|\.nan|~|\.?[0-9.]+)$`)
	needsQuote = lazily(`: | #|:$`)
)

// lazily compiles a pattern at its first use: only a dump needs these, and every command would pay for them.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// text returns s as one plain or quoted scalar. It quotes what other YAML readers would not take for text.
func text(s string, tagged bool) string {
	switch {
	case tagged && plainExpr().MatchString(s) && !needsQuote().MatchString(s) && !unprintable(s):
		return s
	case !tagged && plainText().MatchString(s) && !ambiguous().MatchString(s):
		return s
	case !unprintable(s) && !strings.Contains(s, "\n"):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return doubleQuoted(s)
}

func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case odd(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case odd(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// odd reports whether a character has to be escaped.
func odd(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xd800 && r < 0xe000 || r == 0xfffe || r == 0xffff
}

func unprintable(s string) bool { return strings.ContainsFunc(s, odd) }

// JSON returns n as JSON, keys in the order in which they were written; an expression is {"__jsExpr": "..."}.
func (n *Node) JSON() json.RawMessage {
	var b bytes.Buffer
	switch n.Kind {
	case Expr:
		b.WriteString(`{"__jsExpr":`)
		b.Write(jsonScalar(n.Raw))
		b.WriteByte('}')
	case List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(item.JSON())
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(jsonScalar(f.Key))
			b.WriteByte(':')
			b.Write(f.Value.JSON())
		}
		b.WriteByte('}')
	case Fault:
		return json.RawMessage("null")
	default:
		return jsonScalar(n.Value)
	}
	return b.Bytes()
}

// jsonScalar is json.Marshal without the escapes that are meant for HTML.
func jsonScalar(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n")
}
