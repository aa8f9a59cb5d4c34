package jsexpr

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dop251/goja"
)

// maxDepth bounds how deep a result nests, which also ends one that contains itself.
const maxDepth = 100

// exporter turns a JavaScript value into plain Go values, as JSON.stringify would see it.
type exporter struct {
	size int // bytes so far
}

func (e *exporter) export(v goja.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, &Error{Message: "gave a value that is nested too deep, or contains itself", Offset: -1}
	}
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return nil, e.take(4)
	}
	o, isObject := v.(*goja.Object)
	if !isObject {
		return e.primitive(v)
	}
	if _, callable := goja.AssertFunction(o); callable {
		return nil, gave("a function")
	}
	if toJSON, ok := goja.AssertFunction(o.Get("toJSON")); ok {
		plain, err := toJSON(o)
		if err != nil {
			return nil, err
		}
		if _, again := plain.(*goja.Object); !again {
			return e.export(plain, depth+1)
		}
	}
	switch o.ClassName() {
	case "String", "Number", "Boolean":
		valueOf, ok := goja.AssertFunction(o.Get("valueOf"))
		if !ok {
			return nil, gave("a " + o.ClassName() + " object")
		}
		plain, err := valueOf(o)
		if err != nil {
			return nil, err
		}
		if _, again := plain.(*goja.Object); again {
			return nil, gave("a " + o.ClassName() + " object")
		}
		return e.primitive(plain)
	case "Array":
		return e.list(o, depth)
	case "Object":
		return e.mapping(o, depth)
	}
	return nil, gave("a " + o.ClassName())
}

func (e *exporter) primitive(v goja.Value) (any, error) {
	if _, symbol := v.(*goja.Symbol); symbol {
		return nil, gave("a symbol")
	}
	switch x := v.Export().(type) {
	case bool:
		return x, e.take(5)
	case string:
		return x, e.take(len(strconv.Quote(clipTo(x, MaxResult))))
	case int64:
		return int(x), e.take(len(strconv.FormatInt(x, 10)))
	case float64:
		if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
			return int(x), e.take(8)
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, gave(v.String() + ", which is no value for a config")
		}
		return x, e.take(8)
	}
	return nil, gave("a bigint")
}

func (e *exporter) list(o *goja.Object, depth int) (any, error) {
	n := o.Get("length").ToInteger()
	if n > MaxResult {
		return nil, tooBig
	}
	list := make([]any, n)
	for i := range list {
		x, err := e.export(o.Get(strconv.Itoa(i)), depth+1)
		if err != nil {
			return nil, err
		}
		list[i] = x
		if err := e.take(1); err != nil {
			return nil, err
		}
	}
	return list, e.take(2)
}

func (e *exporter) mapping(o *goja.Object, depth int) (any, error) {
	m := map[string]any{}
	for _, key := range o.Keys() {
		v := o.Get(key)
		if v == nil || goja.IsUndefined(v) {
			continue
		}
		x, err := e.export(v, depth+1)
		if err != nil {
			return nil, err
		}
		m[key] = x
		if err := e.take(len(key) + 4); err != nil {
			return nil, err
		}
	}
	return m, e.take(2)
}

func (e *exporter) take(n int) error {
	if e.size += n; e.size > MaxResult {
		return tooBig
	}
	return nil
}

var tooBig = &Error{Message: fmt.Sprintf("gave more than %d KiB", MaxResult>>10), Offset: -1}

func gave(what string) error { return &Error{Message: "gave " + what, Offset: -1} }

func clipTo(s string, n int) string { return s[:min(len(s), n+1)] }
