package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxViolations bounds what one value can make Violations say.
const maxViolations = 16

// Violations returns what is wrong with a value that Decode returned, each with the path to it; nil if it matches. The
// texts are read by models.
func (s *Schema) Violations(value any) []string {
	var v violations
	s.validate(&v, "", value)
	if v.more > 0 {
		v.texts = append(v.texts, fmt.Sprintf("and %d more", v.more))
	}
	return v.texts
}

type violations struct {
	texts []string
	more  int
}

func (v *violations) add(path, format string, args ...any) {
	if len(v.texts) == maxViolations {
		v.more++
		return
	}
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	v.texts = append(v.texts, text)
}

func (s *Schema) validate(v *violations, path string, value any) {
	if len(s.OneOf) > 0 {
		matched := 0
		for _, branch := range s.OneOf {
			var tried violations
			branch.validate(&tried, path, value)
			if len(tried.texts) == 0 {
				matched++
			}
		}
		if matched != 1 {
			v.add(path, "must match exactly one oneOf branch (matched %d)", matched)
		}
		return
	}
	if want := s.mismatch(value); want != "" {
		v.add(path, "must be %s", want)
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return equal(canonical(e), value) }) {
		v.add(path, "must be one of %s", text(s.Enum))
	}
	if s.Const != nil && !equal(canonical(s.Const), value) {
		v.add(path, "must be %s", text(s.Const))
	}
	switch value := value.(type) {
	case map[string]any:
		s.validateObject(v, path, value)
	case []any:
		if s.Items == nil {
			return
		}
		for i, item := range value {
			s.Items.validate(v, path+"["+strconv.Itoa(i)+"]", item)
		}
	}
}

func (s *Schema) validateObject(v *violations, path string, object map[string]any) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			v.add(path, "missing required property %s", quote(name))
		}
	}
	declared := 0
	for _, p := range s.Properties {
		if member, ok := object[p.Name]; ok {
			declared++
			p.Schema.validate(v, join(path, p.Name), member)
		}
	}
	if !s.Closed || declared == len(object) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(s.Properties, func(p Property) bool { return p.Name == name }) {
			v.add(path, "%s is not a declared property (additionalProperties: false)", quote(name))
		}
	}
}

// mismatch returns what value would have to be, or "" if it is of type s.Type.
func (s *Schema) mismatch(value any) string {
	switch s.Type {
	case "string":
		if _, ok := value.(string); !ok {
			return "a string"
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return "a boolean"
		}
	case "null":
		if value != nil {
			return "null"
		}
	case "object":
		if _, ok := value.(map[string]any); !ok {
			return "an object"
		}
	case "array":
		if _, ok := value.([]any); !ok {
			return "an array"
		}
	case "number", "integer":
		n, ok := value.(json.Number)
		switch {
		case !ok && s.Type == "number":
			return "a number"
		case !ok:
			return "an integer"
		case !finite(n):
			return "a finite JSON number"
		case s.Type == "integer" && !integral(n):
			return "an integer"
		}
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quote returns name as a JSON string, cut to what a person would read.
func quote(name string) string {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "..."
	}
	return text(name)
}

// text returns v as JSON.
func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// canonical returns v as Decode would.
func canonical(v any) any {
	switch v.(type) {
	case string, bool, nil:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v
	}
	c, err := Decode(b)
	if err != nil {
		return v
	}
	return c
}

// equal compares decoded values; numbers by what they are, not by how they are written.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && parse(a) == parse(b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	default: // string, bool, nil
		switch b.(type) {
		case []any, map[string]any:
			return false
		}
		return a == b
	}
}
