package tools_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/testkit"
	"dsh/modules/tools"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func typed(t string) *tools.Schema { return &tools.Schema{Type: t} }

// every is a schema with each keyword of the subset.
func every() *tools.Schema {
	return &tools.Schema{
		Type: "object", Closed: true, Required: []string{"s"},
		Properties: []tools.Property{
			{Name: "s", Schema: typed("string")},
			{Name: "n", Schema: typed("number")},
			{Name: "i", Schema: typed("integer")},
			{Name: "b", Schema: typed("boolean")},
			{Name: "z", Schema: typed("null")},
			{Name: "o", Schema: &tools.Schema{
				Type: "object", Required: []string{"x"}, Properties: []tools.Property{{Name: "x", Schema: typed("string")}},
			}},
			{Name: "a", Schema: &tools.Schema{Type: "array", Items: typed("integer")}},
			{Name: "e", Schema: &tools.Schema{Type: "string", Enum: []any{"<one>", "two"}}},
			{Name: "f", Schema: &tools.Schema{Type: "number", Enum: []any{1, 2.5}}},
			{Name: "c", Schema: &tools.Schema{Type: "boolean", Const: false}},
			{Name: "u", Schema: &tools.Schema{OneOf: []*tools.Schema{typed("integer"), typed("number"), typed("null")}}},
			{Name: "d", Schema: &tools.Schema{Type: "object", Const: map[string]any{"k": []any{1, nil}}}},
		},
	}
}

func TestViolationTexts(t *testing.T) {
	for value, want := range map[string][]string{
		`{"s":""}`:                               nil,
		`{}`:                                     {`missing required property "s"`},
		`[]`:                                     {`must be an object`},
		`null`:                                   {`must be an object`},
		`{"s":1}`:                                {`s: must be a string`},
		`{"s":null}`:                             {`s: must be a string`},
		`{"s":"","n":"5000"}`:                    {`n: must be a number`},
		`{"s":"","n":1e400}`:                     {`n: must be a finite JSON number`},
		`{"s":"","n":-1e400}`:                    {`n: must be a finite JSON number`},
		`{"s":"","n":1e-400}`:                    nil,
		`{"s":"","i":1.5}`:                       {`i: must be an integer`},
		`{"s":"","i":"1"}`:                       {`i: must be an integer`},
		`{"s":"","i":1.0}`:                       nil,
		`{"s":"","i":15e-1}`:                     {`i: must be an integer`},
		`{"s":"","i":150e-1}`:                    nil,
		`{"s":"","i":1e3}`:                       nil,
		`{"s":"","i":9007199254740993}`:          nil,
		`{"s":"","i":-0}`:                        nil,
		`{"s":"","i":0e-99999999999999}`:         nil,
		`{"s":"","i":1e-9999999999999999999999}`: {`i: must be an integer`},
		`{"s":"","b":0}`:                         {`b: must be a boolean`},
		`{"s":"","z":0}`:                         {`z: must be null`},
		`{"s":"","o":{"y":1}}`:                   {`o: missing required property "x"`},
		`{"s":"","o":{"x":1}}`:                   {`o.x: must be a string`},
		`{"s":"","a":{}}`:                        {`a: must be an array`},
		`{"s":"","a":[1,"2",3.5]}`:               {`a[1]: must be an integer`, `a[2]: must be an integer`},
		`{"s":"","e":"three"}`:                   {`e: must be one of ["<one>","two"]`},
		`{"s":"","e":"<one>"}`:                   nil,
		`{"s":"","f":1.0}`:                       nil,
		`{"s":"","f":25e-1}`:                     nil,
		`{"s":"","f":2}`:                         {`f: must be one of [1,2.5]`},
		`{"s":"","c":true}`:                      {`c: must be false`},
		`{"s":"","c":false}`:                     nil,
		`{"s":"","u":null}`:                      nil,
		`{"s":"","u":1.5}`:                       nil,
		`{"s":"","u":1}`:                         {`u: must match exactly one oneOf branch (matched 2)`},
		`{"s":"","u":"1"}`:                       {`u: must match exactly one oneOf branch (matched 0)`},
		`{"s":"","d":{"k":[1.0,null]}}`:          nil,
		`{"s":"","d":{"k":[1]}}`:                 {`d: must be {"k":[1,null]}`},
		`{"s":"","d":{"k":[1,{}]}}`:              {`d: must be {"k":[1,null]}`},
		`{"S":"","s":"","y":1}`:                  {`"S" is not a declared property (additionalProperties: false)`, `"y" is not a declared property (additionalProperties: false)`},
		`{"n":"","o":{}}`:                        {`missing required property "s"`, `n: must be a number`, `o: missing required property "x"`},
	} {
		decoded, err := tools.Decode(json.RawMessage(value))
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		got := every().Violations(decoded)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	decoded, err := tools.Decode(json.RawMessage(`{"s":"","a":[` + strings.Repeat(`"",`, 99) + `""]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := every().Violations(decoded)
	if len(got) != 17 || got[16] != "and 84 more" {
		t.Fatalf("a hundred violations: got %q", got)
	}
}

func TestSchemaOutsideOfTheSubset(t *testing.T) {
	circle := &tools.Schema{Type: "array"}
	circle.Items = circle
	shared := typed("string")
	for _, c := range []struct {
		name   string
		schema *tools.Schema
		want   string
	}{
		{"every keyword", every(), ""},
		{"a schema in two places", &tools.Schema{Type: "object", Properties: []tools.Property{{"a", shared}, {"b", shared}}}, ""},
		{"none", nil, `p must be a schema`},
		{"empty", &tools.Schema{}, `p must declare type or oneOf`},
		{"both", &tools.Schema{Type: "string", OneOf: []*tools.Schema{shared, shared}}, `p cannot declare both type and oneOf`},
		{"one branch", &tools.Schema{OneOf: []*tools.Schema{shared}}, `p.oneOf must be an array of at least two schemas`},
		{"no branch", &tools.Schema{OneOf: []*tools.Schema{}}, `p.oneOf must be an array of at least two schemas`},
		{"a bad branch", &tools.Schema{OneOf: []*tools.Schema{shared, nil}}, `p.oneOf[1] must be a schema`},
		{"a type that is none", typed("date"), `p.type "date" is not a JSON type`},
		{"required without property", &tools.Schema{Type: "object", Required: []string{"x"}}, `p.required names "x" which is not in properties`},
		{"one name twice", &tools.Schema{Type: "object", Properties: []tools.Property{{"a", shared}, {"a", shared}}}, `p.properties names "a" twice`},
		{"empty enum", &tools.Schema{Type: "string", Enum: []any{}}, `p.enum must be a non-empty array of string values`},
		{"enum of another type", &tools.Schema{Type: "integer", Enum: []any{1, 1.5}}, `p.enum must be a non-empty array of integer values`},
		{"const of another type", &tools.Schema{Type: "string", Const: 1}, `p.const must be a string value`},
		{"const that is no JSON", &tools.Schema{Type: "string", Const: make(chan int)}, `p.const must be a string value`},
		{"circle", circle, `p.items is circular`},
		{"properties of a string", &tools.Schema{Type: "string", Closed: true}, `p.properties, required and additionalProperties need type object`},
		{"items of a string", &tools.Schema{Type: "string", Items: shared}, `p.items needs type array`},
		{"keywords beside oneOf", &tools.Schema{OneOf: []*tools.Schema{shared, typed("null")}, Const: "x"}, `p cannot declare oneOf and keywords of a type`},
		{"several", &tools.Schema{Type: "object", Properties: []tools.Property{{"a", typed("")}, {"b", typed("x")}}}, `p.properties.a must declare type or oneOf; p.properties.b.type "x" is not a JSON type`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := c.schema.Check("p"); err != nil {
				var schema *tools.SchemaError
				if !errors.As(err, &schema) {
					t.Fatalf("got a %T, want a *tools.SchemaError", err)
				}
				got = err.Error()
			}
			want := c.want
			if want != "" {
				want = "unsupported JSON schema: " + want
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestDecodeRefusesWhatWouldNotSurvive(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "unexpected end",
		`{`:                         "unexpected end",
		`{}{}`:                      "after top-level value",
		`NaN`:                       "invalid character",
		"\"\xff\"":                  "not UTF-8",
		`"\ud800"`:                  `half a surrogate pair: \ud800`,
		`"\uDC00"`:                  `half a surrogate pair: \udc00`,
		`"\ud800\ud800"`:            `half a surrogate pair: \ud800`,
		`"\ud800x12345"`:            `half a surrogate pair: \ud800`,
		`"\ud800\n12345"`:           `half a surrogate pair: \ud800`,
		`{"\ud800":1}`:              `half a surrogate pair: \ud800`,
		`{"a":1,"a":1}`:             `two members are called "a"`,
		`{"a":1,"\u0061":1}`:        `two members are called "a"`,
		`[{"a":{"b":1,"b":2}}]`:     `two members are called "b"`,
		strings.Repeat("[", 100000): "max depth",
		`"` + "a\x00b" + `"`:        "invalid character",
		`{"` + strings.Repeat("x", 5000) + `":1,"` + strings.Repeat("x", 5000) + `":1}`: `xxx..."`,
	} {
		v, err := tools.Decode(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%.40q: got %v, %v, want an error with %q", text, v, err, want)
		}
	}
}

func TestDecodeKeepsWhatIsThere(t *testing.T) {
	for text, want := range map[string]any{
		`9007199254740993`:      json.Number("9007199254740993"),
		`1e400`:                 json.Number("1e400"),
		`"\ud83d\ude00"`:        "\U0001F600",
		`"\\ud800 \" \u00e9\/"`: "\\ud800 \" é/",
		`"\u0000"`:              "\x00",
		` {"a":[null,{}, []]} `: map[string]any{"a": []any{nil, map[string]any{}, []any{}}},
		`null`:                  nil,
	} {
		got, err := tools.Decode(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestSchemaDocumentKeepsTheOrderOfProperties(t *testing.T) {
	got, err := json.Marshal(&tools.Schema{
		Type: "object", Description: "d", Required: []string{"b"}, Closed: true,
		Properties: []tools.Property{{"b", typed("string")}, {"a", &tools.Schema{Type: "array", Items: typed("null")}}},
	})
	const want = `{"type":"object","description":"d","properties":{"b":{"type":"string"},"a":{"type":"array","items":{"type":"null"}}},` +
		`"required":["b"],"additionalProperties":false}`
	if err != nil || string(got) != want {
		t.Fatalf("got %s, %v, want %s", got, err, want)
	}
}

// FuzzArguments: whatever comes as arguments, to decode and validate it neither panics nor lets through what another
// decoder reads differently.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"s":"x","n":1e400,"i":-0.0e-5,"u":1}`, `{"s":"\ud83d\ude00\u0041","e":"two","a":[1,2,3]}`, `{"s":1,"o":{"x":{}},"c":0}`,
		`"\ud800\\u`, `[[[[`, `{"a":1,"a":2}`, `1e99999999999999999999`, `{"d":{"k":[1,null]}}`, "\"\xff", `{"f":0.00e9}`, ``,
	} {
		f.Add([]byte(seed))
	}
	schema := every()
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := tools.Decode(text)
		if err != nil {
			return
		}
		schema.Violations(v)
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(v, want) {
			t.Fatalf("%q became %v, want %v (%v)", text, v, want, err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%q was decoded and cannot be encoded: %v", text, err)
		}
		second, err := tools.Decode(again)
		if err != nil || !reflect.DeepEqual(v, second) {
			t.Fatalf("%q became %q, %v", text, again, err)
		}
	})
}
