package compose

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

type moduleFieldError = module.FieldError

// checker compares a config with the type that it will be decoded into, so that every fault has the place of its key or
// value. Expressions that were not evaluated are passed over.
type checker struct {
	row    string
	shapes shapes
	faults *collector
}

func (c *checker) config(n *source.Node, t reflect.Type) {
	if n == nil || n.Kind == source.Null {
		return
	}
	c.value(n, t, "config", "")
}

// value checks one value. name is what a message calls it, path what the keys inside of it are prefixed with.
func (c *checker) value(n *source.Node, t reflect.Type, name, path string) {
	if n.Kind == source.Expr || n.Kind == source.Fault {
		return
	}
	if textual(t) {
		c.want(n, name, "text", n.Kind == source.Text)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if n.Kind != source.Null {
			c.value(n, t.Elem(), name, path)
		}
	case reflect.Struct:
		if c.want(n, name, "a mapping", n.Kind == source.Map) {
			c.fields(n, t, path)
		}
	case reflect.Map:
		if c.want(n, name, "a mapping", n.Kind == source.Map) {
			for _, f := range n.Fields {
				key := path + spelt(f)
				c.value(f.Value, t.Elem(), key, key+".")
			}
		}
	case reflect.Slice:
		if c.want(n, name, "a list", n.Kind == source.List) {
			for i, item := range n.Items {
				at := fmt.Sprintf("%s[%d]", name, i)
				c.value(item, t.Elem(), at, at+".")
			}
		}
	case reflect.String:
		c.want(n, name, "text", n.Kind == source.Text)
	case reflect.Bool:
		c.want(n, name, "true or false", n.Kind == source.Bool)
	case reflect.Float32, reflect.Float64:
		c.want(n, name, "a number", n.Kind == source.Float || n.Kind == source.Int)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, ok := integer(n)
		if c.want(n, name, "an integer", ok) {
			c.want(n, name, fmt.Sprintf("an integer of at most %d bits", t.Bits()), !reflect.Zero(t).OverflowInt(int64(i)))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, ok := integer(n)
		if c.want(n, name, "an integer", ok) && c.want(n, name, "0 or more", i >= 0) {
			c.want(n, name, fmt.Sprintf("an integer of at most %d bits", t.Bits()), !reflect.Zero(t).OverflowUint(uint64(i)))
		}
	}
}

// fields checks the keys of a struct.
func (c *checker) fields(n *source.Node, t reflect.Type, path string) {
	known := c.shapes.of(t)
	for _, f := range n.Fields {
		i := indexKey(known, f.Key)
		if i < 0 {
			hint := keyHint(f.Key, known)
			if path == "" && strings.HasPrefix(f.Place.File, setFile+" ") && slices.Contains(rowKeys, f.Key) {
				hint = fmt.Sprintf("--set is for what is in config; a patch file can have `- {id: %s, %s: ...}`", c.row, f.Key)
			}
			c.faults.fault(f.Place, c.row, "unknown-key", fmt.Sprintf("unknown config key %q", path+spelt(f)), hint)
			continue
		}
		c.value(f.Value, known[i].typ, path+f.Key, path+f.Key+".")
	}
}

// spelt is a key in a message: an expression can make keys of what it reads from the environment.
func spelt(f source.Field) string {
	if f.Value.FromEnv {
		return "..."
	}
	return f.Key
}

// want adds a fault unless ok, and returns ok.
func (c *checker) want(n *source.Node, name, want string, ok bool) bool {
	if ok {
		return true
	}
	message := fmt.Sprintf("%s must be %s, got %s", name, want, got(n))
	if n.Computed {
		message = fmt.Sprintf("%s must be %s, and the expression gives %s", name, want, got(n))
	}
	c.faults.fault(n.Place, c.row, "type", message, typeHint(n, name, want))
	return false
}

func typeHint(n *source.Node, name, want string) string {
	if n.Computed {
		if want == "an integer" && n.Kind == source.Text {
			return "Number(...) makes a number of text"
		}
		return ""
	}
	switch {
	case expressionHint(n) != "":
		return expressionHint(n)
	case n.Kind == source.Null:
		return "leave the key out to have the module's default"
	case want == "true or false":
		return boolHint(n)
	case want == "text":
		return quoteHint(n)
	case (want == "an integer" || want == "a number") && n.Kind == source.Text:
		n2, _ := source.ParseValue(diag.Place{}, n.Raw)
		if n2 != nil && (n2.Kind == source.Int || n2.Kind == source.Float) {
			return "write it without quotes"
		}
		if strings.HasSuffix(name, "Ms") {
			return "write milliseconds, as in 5000"
		}
		return "write the number out, in digits"
	case want == "a list":
		return "write it as [a, b]"
	}
	return ""
}

func keyHint(key string, known []configField) string {
	keys := make([]string, len(known))
	for i, f := range known {
		keys[i] = f.key
	}
	if near := diag.Nearest(key, keys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(keys) == 0 {
		return "this module takes no config"
	}
	return few("the keys are", keys)
}

// integer returns a number without a fraction, however it is written.
func integer(n *source.Node) (int, bool) {
	switch v := n.Value.(type) {
	case int:
		return v, n.Kind == source.Int
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) <= 1<<53
	}
	return 0, false
}

// configField is a key of a module's configuration.
type configField struct {
	key    string
	doc    string
	values []string // that it takes, if the field's tag lists them
	typ    reflect.Type
	index  []int
}

// shapes remembers the keys of struct types while a plan is made.
type shapes map[reflect.Type][]configField

func (s shapes) of(t reflect.Type) []configField {
	fields, ok := s[t]
	if !ok {
		fields = configFields(t)
		s[t] = fields
	}
	return fields
}

// configFields returns the keys of a struct, in order, those of squashed structs among them.
func configFields(t reflect.Type) []configField {
	var fields []configField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case strings.Contains(options, "squash"):
			for _, inner := range configFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case f.IsExported() && tag != "" && tag != "-":
			field := configField{key: tag, doc: f.Tag.Get("doc"), typ: f.Type, index: []int{i}}
			if values, ok := f.Tag.Lookup("values"); ok {
				field.values = strings.Split(values, ",")
			}
			fields = append(fields, field)
		}
	}
	return fields
}

func indexKey(fields []configField, key string) int {
	for i, f := range fields {
		if f.key == key {
			return i
		}
	}
	return -1
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// textual reports whether a type is written as text whatever it is made of.
func textual(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }
