package tools

import (
	"encoding/json"
	"errors"
)

// Schema is the subset of JSON Schema that tools use. Exactly one of Type and OneOf is set. It is not changed once a
// tool with it has been registered.
type Schema struct {
	Type        string // string, number, integer, boolean, null, object, array
	Description string
	Properties  []Property // of an object, in the order in which a model reads them
	Required    []string
	Closed      bool // additionalProperties: false
	Items       *Schema
	Enum        []any
	Const       any
	OneOf       []*Schema
}

// Property is a named member of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// MarshalJSON returns s as a JSON Schema document.
func (s *Schema) MarshalJSON() ([]byte, error) {
	var b object
	b.add("type", s.Type, s.Type != "")
	b.add("description", s.Description, s.Description != "")
	if s.Type == "object" {
		var props object
		for _, p := range s.Properties {
			props.add(p.Name, p.Schema, true)
		}
		b.add("properties", &props, true)
		b.add("required", s.Required, len(s.Required) > 0)
		b.add("additionalProperties", false, s.Closed)
	}
	b.add("items", s.Items, s.Items != nil)
	b.add("enum", s.Enum, len(s.Enum) > 0)
	b.add("const", s.Const, s.Const != nil)
	b.add("oneOf", s.OneOf, len(s.OneOf) > 0)
	return b.MarshalJSON()
}

// object is a JSON object that keeps the order of its members.
type object struct {
	body []byte
	err  error
}

func (o *object) add(name string, value any, present bool) {
	if !present || o.err != nil {
		return
	}
	k, kerr := json.Marshal(name)
	v, verr := json.Marshal(value)
	if o.err = errors.Join(kerr, verr); o.err != nil {
		return
	}
	if len(o.body) > 0 {
		o.body = append(o.body, ',')
	}
	o.body = append(append(append(o.body, k...), ':'), v...)
}

// MarshalJSON returns the object.
func (o *object) MarshalJSON() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(append([]byte{'{'}, o.body...), '}'), nil
}
