package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"dsh/internal/diag"
)

// MaxAliased is how many nodes the aliases of one text may add to it.
const MaxAliased = 10_000

// maxDepth bounds how deep values nest; everything after this package recurses over them.
const maxDepth = 200

// Parse reads text as one YAML document. An empty one, or one with comments only, is a Null node. The error is a
// *diag.Diagnostic.
func Parse(file string, text []byte) (*Node, error) {
	p := &parser{file: file, text: string(text)}
	p.lines = strings.Split(strings.TrimPrefix(p.text, "\ufeff"), "\n")
	if !utf8.Valid(text) {
		return nil, p.encoding()
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, p.syntax(err)
	}
	var document, second yaml.Node
	switch err := loader.Load(&document); {
	case errors.Is(err, io.EOF):
		return &Node{Kind: Null, Place: diag.Place{File: file, Text: p.text}}, nil
	case err != nil:
		return nil, p.syntax(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, p.second(second.Line)
	case !errors.Is(err, io.EOF):
		return nil, p.syntax(err)
	}
	n := p.convert(document.Content[0], 0)
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

type parser struct {
	file    string
	text    string
	lines   []string
	anchors map[*yaml.Node]*anchor
	aliased int
	keys    map[*Node]map[string]int // lines of the keys of large maps
	err     *diag.Diagnostic         // what ends the reading of the whole text
}

type anchor struct {
	node *Node // nil while it is being read
	size int
}

func (p *parser) convert(y *yaml.Node, depth int) *Node {
	if p.err != nil {
		return &Node{}
	}
	if depth > maxDepth {
		p.err = p.fault(p.place(y), "too-deep", fmt.Sprintf("values are nested more than %d deep", maxDepth), "").Fault
		return &Node{}
	}
	if y.Kind == yaml.AliasNode {
		return p.alias(y)
	}
	var a *anchor
	if y.Anchor != "" {
		if p.anchors == nil {
			p.anchors = map[*yaml.Node]*anchor{}
		}
		a = &anchor{}
		p.anchors[y] = a
	}
	n := p.value(y, depth)
	if a != nil {
		a.node, a.size = n, size(n)
	}
	return n
}

func (p *parser) alias(y *yaml.Node) *Node {
	a := p.anchors[y.Alias]
	if a == nil || a.node == nil {
		return p.fault(p.place(y), "alias", fmt.Sprintf("the alias *%s stands inside of what it names", y.Value), "")
	}
	p.aliased += a.size
	if p.aliased > MaxAliased {
		p.err = p.fault(p.place(y), "alias", fmt.Sprintf("aliases repeat more than %d values", MaxAliased), "write the rows out, or use fewer aliases").Fault
	}
	return a.node
}

func (p *parser) value(y *yaml.Node, depth int) *Node {
	place := p.place(y)
	if y.Style&yaml.TaggedStyle != 0 || y.Tag == "!" {
		if y.Tag != "!!js" {
			return p.fault(place, "tag", fmt.Sprintf("the tag %s is not known here", y.Tag), "only !!js is; leave it out, or quote the whole value if it is text")
		}
		if y.Kind != yaml.ScalarNode {
			return p.fault(place, "tag", "!!js takes an expression as text, not a list or a mapping", "quote the expression")
		}
		return &Node{Kind: Expr, Place: place, Raw: y.Value}
	}
	switch y.Kind {
	case yaml.ScalarNode:
		n := &Node{Kind: Text, Place: place, Raw: y.Value, Value: y.Value, Block: y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0}
		if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			n.Kind, n.Value = resolve(y.Value)
		}
		return n
	case yaml.SequenceNode:
		n := &Node{Kind: List, Place: place, Items: make([]*Node, len(y.Content)), Block: y.Style&yaml.FlowStyle == 0}
		for i, c := range y.Content {
			n.Items[i] = p.convert(c, depth+1)
			n.faulty = n.faulty || n.Items[i].faulty
		}
		return n
	}
	n := &Node{Kind: Map, Place: place, Fields: make([]Field, 0, len(y.Content)/2), Block: y.Style&yaml.FlowStyle == 0}
	for i := 0; i+1 < len(y.Content); i += 2 {
		f := p.field(n, y.Content[i], y.Content[i+1], depth)
		n.Fields = append(n.Fields, f)
		n.faulty = n.faulty || f.Value.faulty
	}
	return n
}

// field reads a key and its value. A key that cannot be used makes its value a fault.
func (p *parser) field(n *Node, key, value *yaml.Node, depth int) Field {
	written := key
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	f := Field{Key: key.Value, Place: p.place(written)}
	plain := key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0
	switch {
	case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
		f.Value = p.fault(f.Place, "key", "a key is plain text", "")
		return f
	case key.Value == "<<" && plain:
		f.Value = p.fault(f.Place, "merge-key", "merge keys are not supported", "write the keys out, or give the whole value an alias")
		return f
	}
	if first, again := p.seen(n, key.Value); again {
		f.Value = p.fault(f.Place, "duplicate-key", fmt.Sprintf("the key %q stands here twice", key.Value), fmt.Sprintf("it was given first in line %d", first))
		return f
	}
	f.Value = p.convert(value, depth+1)
	return f
}

// seen reports whether n has the key already, and in which line.
func (p *parser) seen(n *Node, key string) (line int, again bool) {
	if p.keys == nil {
		p.keys = map[*Node]map[string]int{}
	}
	if len(n.Fields) < 16 {
		if f := n.Field(key); f != nil {
			return f.Place.Line, true
		}
		return 0, false
	}
	keys := p.keys[n]
	if keys == nil {
		keys = map[string]int{}
		p.keys[n] = keys
	}
	for _, f := range n.Fields[len(keys):] {
		if _, ok := keys[f.Key]; !ok {
			keys[f.Key] = f.Place.Line
		}
	}
	line, again = keys[key]
	return line, again
}

func (p *parser) fault(place diag.Place, slug, message, hint string) *Node {
	return &Node{Kind: Fault, Place: place, faulty: true, Fault: &diag.Diagnostic{Place: place, Slug: slug, Message: message, Hint: hint}}
}

// size counts the nodes of n, aliased ones each time.
func size(n *Node) int {
	total := 0
	n.Walk(func(*Node) bool { total++; return total <= MaxAliased })
	return total
}
