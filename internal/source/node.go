package source

import (
	"dsh/internal/diag"
)

// Kind is what a node holds.
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Text
	List
	Map
	Expr  // a `!!js` scalar; Raw is its text
	Fault // not readable; Fault says why
)

// String returns the kind as a message names a value of it.
func (k Kind) String() string {
	return [...]string{"null", "true or false", "an integer", "a number", "text", "a list", "a mapping", "an expression", "a faulty value"}[k]
}

// Node is a value and its place. Nodes are shared where an alias names an anchor, and never change.
type Node struct {
	Kind   Kind
	Place  diag.Place
	Raw    string           // a scalar without its quotes
	Value  any              // of a scalar: nil, bool, int, float64 or string
	Items  []*Node          // of a list
	Fields []Field          // of a map, in order
	Fault  *diag.Diagnostic // of a Fault node
	Block  bool             // a text in block style, or a list or map that is not in flow style
	faulty bool             // this node is a Fault, or one under it

	Computed bool // an expression gave this value, and Place is the expression's
	FromEnv  bool // it did so by reading a variable that is set, so the value is not to be printed
}

// Field is one key of a map.
type Field struct {
	Key   string
	Place diag.Place // of the key
	Value *Node
}

// Get returns the value of key, or nil without one or when n is no map.
func (n *Node) Get(key string) *Node {
	if f := n.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// Field returns the field called key, or nil.
func (n *Node) Field(key string) *Field {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Key == key {
			return &n.Fields[i]
		}
	}
	return nil
}

// Faults returns every fault in n, in the order of the text.
func (n *Node) Faults() []*diag.Diagnostic {
	if n == nil || !n.faulty {
		return nil
	}
	if n.Kind == Fault {
		return []*diag.Diagnostic{n.Fault}
	}
	var faults []*diag.Diagnostic
	for _, item := range n.Items {
		faults = append(faults, item.Faults()...)
	}
	for _, f := range n.Fields {
		faults = append(faults, f.Value.Faults()...)
	}
	return faults
}

// Walk calls f for n and for every node under it, in the order of the text, until f returns false for a node, whose
// children it then leaves out.
func (n *Node) Walk(f func(*Node) bool) {
	if n == nil || !f(n) {
		return
	}
	for _, item := range n.Items {
		item.Walk(f)
	}
	for _, field := range n.Fields {
		field.Value.Walk(f)
	}
}

// With returns n with the value at path, making maps where there are none. Nothing else is copied or changed. It
// returns nil if something on the way is neither a map nor null.
func (n *Node) With(path []string, place diag.Place, value *Node) *Node {
	if len(path) == 0 {
		return value
	}
	if n == nil || n.Kind == Null {
		n = &Node{Kind: Map, Place: place, Block: true}
	}
	if n.Kind != Map {
		return nil
	}
	out := *n
	out.Fields = append([]Field(nil), n.Fields...)
	field := out.Field(path[0])
	if field == nil {
		out.Fields = append(out.Fields, Field{Key: path[0]})
		field = &out.Fields[len(out.Fields)-1]
	}
	inner := field.Value.With(path[1:], place, value)
	if inner == nil {
		return nil
	}
	if len(path) == 1 || field.Value == nil {
		field.Place = place
	}
	field.Value = inner
	return &out
}
