// Package yamldoc reads the YAML files that modules have of their own. It hands on what the composer's reader makes of
// them, so that a module's file follows the rules of a patch file: `off` and `no` are text, a key that comes twice is a
// fault, and nothing grows through aliases.
package yamldoc

import (
	"encoding/json"
	"fmt"

	"dsh/internal/source"
)

// Item is an item of a list.
type Item struct {
	Line int
	JSON json.RawMessage // its keys in the order in which they were written
}

// List reads text as a list. The error says where in file something is wrong.
func List(file string, text []byte) ([]Item, error) {
	root, err := source.Parse(file, text)
	if err != nil {
		return nil, err
	}
	if faults := root.Faults(); len(faults) > 0 {
		return nil, faults[0]
	}
	if root.Kind != source.List {
		return nil, fmt.Errorf("%s:%d: want a list, got %s", file, max(root.Place.Line, 1), root.Kind)
	}
	items := make([]Item, len(root.Items))
	for i, n := range root.Items {
		items[i] = Item{Line: n.Place.Line, JSON: n.JSON()}
	}
	return items, nil
}
