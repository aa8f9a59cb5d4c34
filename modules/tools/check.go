package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SchemaError is a Schema outside of the subset.
type SchemaError struct{ Violations []string }

// Error returns the violations on one line.
func (e *SchemaError) Error() string {
	return "unsupported JSON schema: " + strings.Join(e.Violations, "; ")
}

// Check returns a *SchemaError if s is not of the subset. Root is what the faults call s.
func (s *Schema) Check(root string) error {
	c := checker{}
	c.check(root, s)
	if len(c.faults) > 0 {
		return &SchemaError{Violations: c.faults}
	}
	return nil
}

type checker struct {
	faults []string
	above  []*Schema // on the way from the root
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) check(path string, s *Schema) {
	switch {
	case s == nil:
		c.fault("%s must be a schema", path)
		return
	case slices.Contains(c.above, s):
		c.fault("%s is circular", path)
		return
	}
	c.above = append(c.above, s)
	defer func() { c.above = c.above[:len(c.above)-1] }()

	switch {
	case s.OneOf != nil:
		c.checkOneOf(path, s)
	case s.Type == "":
		c.fault("%s must declare type or oneOf", path)
	case !slices.Contains([]string{"string", "number", "integer", "boolean", "null", "object", "array"}, s.Type):
		c.fault("%s.type %q is not a JSON type", path, s.Type)
	default:
		c.checkTyped(path, s)
	}
}

func (c *checker) checkOneOf(path string, s *Schema) {
	if s.Type != "" {
		c.fault("%s cannot declare both type and oneOf", path)
	}
	if s.Properties != nil || s.Required != nil || s.Closed || s.Items != nil || s.Enum != nil || s.Const != nil {
		c.fault("%s cannot declare oneOf and keywords of a type", path)
	}
	if len(s.OneOf) < 2 {
		c.fault("%s.oneOf must be an array of at least two schemas", path)
	}
	for i, branch := range s.OneOf {
		c.check(fmt.Sprintf("%s.oneOf[%d]", path, i), branch)
	}
}

func (c *checker) checkTyped(path string, s *Schema) {
	if s.Type != "object" && (s.Properties != nil || s.Required != nil || s.Closed) {
		c.fault("%s.properties, required and additionalProperties need type object", path)
	}
	if s.Type != "array" && s.Items != nil {
		c.fault("%s.items needs type array", path)
	}
	seen := map[string]bool{}
	for _, p := range s.Properties {
		if seen[p.Name] {
			c.fault("%s.properties names %s twice", path, quote(p.Name))
		}
		seen[p.Name] = true
		c.check(path+".properties."+p.Name, p.Schema)
	}
	for _, name := range s.Required {
		if !seen[name] {
			c.fault("%s.required names %s which is not in properties", path, quote(name))
		}
	}
	if s.Items != nil {
		c.check(path+".items", s.Items)
	}
	if s.Enum != nil && (len(s.Enum) == 0 || slices.ContainsFunc(s.Enum, func(e any) bool { return !s.admits(e) })) {
		c.fault("%s.enum must be a non-empty array of %s values", path, s.Type)
	}
	if s.Const != nil && !s.admits(s.Const) {
		c.fault("%s.const must be a %s value", path, s.Type)
	}
}

// admits reports whether v, as JSON, is of type s.Type.
func (s *Schema) admits(v any) bool {
	b, err := json.Marshal(v)
	if err != nil {
		return false
	}
	d, err := Decode(b)
	return err == nil && s.mismatch(d) == ""
}
