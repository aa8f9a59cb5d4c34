package source

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dsh/internal/diag"
)

// ParseValue reads text as one value in flow style, all of which stands at place. The error is a *diag.Diagnostic.
func ParseValue(place diag.Place, text string) (*Node, error) {
	n, err := Parse("", []byte(text))
	if err != nil {
		d := *err.(*diag.Diagnostic)
		d.Place = place
		return nil, &d
	}
	n.Walk(func(n *Node) bool {
		n.Place = place
		for i := range n.Fields {
			n.Fields[i].Place = place
		}
		if n.Fault != nil {
			n.Fault.Place = place
		}
		return true
	})
	return n, nil
}

// Of makes a computed node of a plain value: nil, bool, int, float64, string, []any or map[string]any.
func Of(value any, place diag.Place, fromEnv bool) *Node {
	n := &Node{Place: place, Value: value, Computed: true, FromEnv: fromEnv}
	switch v := value.(type) {
	case nil:
		n.Raw = "null"
	case bool:
		n.Kind, n.Raw = Bool, strconv.FormatBool(v)
	case int:
		n.Kind, n.Raw = Int, strconv.Itoa(v)
	case float64:
		n.Kind, n.Raw = Float, strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		n.Kind, n.Raw = Text, v
	case []any:
		n.Kind, n.Value = List, nil
		for _, item := range v {
			n.Items = append(n.Items, Of(item, place, fromEnv))
		}
	case map[string]any:
		n.Kind, n.Value = Map, nil
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Fields = append(n.Fields, Field{Key: key, Place: place, Value: Of(v[key], place, fromEnv)})
		}
	default:
		panic(fmt.Sprintf("source.Of: %T", value))
	}
	return n
}

// Go returns n as plain values, the inverse of Of. Expressions and faults are nil.
func (n *Node) Go() any {
	switch n.Kind {
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Go()
		}
		return list
	case Map:
		m := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			m[f.Key] = f.Value.Go()
		}
		return m
	case Expr, Fault:
		return nil
	}
	return n.Value
}
