package yamldoc_test

import (
	"strings"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/internal/yamldoc"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestItemsKnowTheirLines(t *testing.T) {
	t.Parallel()
	items, err := yamldoc.List("f.yaml", []byte("- b: off\n  a: 1\n\n- |\n  x\n"))
	if err != nil || len(items) != 2 {
		t.Fatalf("got %v, %v", items, err)
	}
	if items[0].Line != 1 || string(items[0].JSON) != `{"b":"off","a":1}` || items[1].Line != 4 || string(items[1].JSON) != `"x\n"` {
		t.Errorf("got %v", items)
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	t.Parallel()
	for text, place := range map[string]string{
		"- a: [": "f.yaml:", "a: 1\n": "f.yaml:1", "- a: 1\n  a: 2\n": "f.yaml:2", "": "f.yaml:1",
	} {
		if items, err := yamldoc.List("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%q: got %v, %v, want an error at %s", text, items, err, place)
		}
	}
}
