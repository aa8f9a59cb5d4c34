package compose_test

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dsh/compose"
)

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("patch.json", decoded(t, string(text))); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("patch.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestASchemaOfEveryShapeOfConfig(t *testing.T) {
	t.Parallel()
	p, err := oddPlan(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	text, err := compose.Schema(p.Rows(), oddRegistry(t))
	if err != nil {
		t.Fatal(err)
	}
	schema := compiled(t, text)
	for config, want := range map[string]bool{
		`{"common":"x","pointer":null,"inner":{"common":"y"},"list":[{"common":"z"}],"map":{"l":{"common":"m"}},"any":{"a":[1]}}`: true,
		`{"pointer":7,"small":-128,"count":65535,"size":"12k","lists":[[1],[]]}`:                                                  true,
		`{"small":128}`: false, `{"count":-1}`: false, `{"count":65536}`: false, `{"size":12}`: false, `{"inner":{"comon":"x"}}`: false,
		`{"list":[{},{"x":1}]}`: false, `{"map":{"a":{"b":1}}}`: false, `{"Hidden":"x"}`: false, `{"shared":{}}`: false,
		`{"lists":[[1],["x"]]}`: false, `{"pointer":"x"}`: false, `{"list":null}`: false,
	} {
		patch := decoded(t, `[{"id":"odd","config":`+config+`}]`)
		if err := schema.Validate(patch); (err == nil) != want {
			t.Errorf("%s: got %v, want it valid: %v", config, err, want)
		}
	}
}
