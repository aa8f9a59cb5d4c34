package compose_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/compose"
)

// corpus returns the folder with patch files as people write them.
func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		t.Skip("CORPUS_DIR is not set")
	}
	return dir
}

func corpusLayer(t testing.TB, path string) compose.Layer {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return compose.Parse(compose.Source{Name: filepath.Base(path), File: path, Text: text})
}

// corpusRows returns rows as plain values by id, and the ids in order.
func corpusRows(t testing.TB, rows *compose.Rows) (byID map[string]any, ids []string) {
	t.Helper()
	text, err := rows.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	byID = map[string]any{}
	for _, row := range list {
		id := row["id"].(string)
		byID[id] = row
		ids = append(ids, id)
	}
	return byID, ids
}

// TestCorpusFoldsAsUpstreamFolds compares with what upstream's own algorithm makes of the same patches.
func TestCorpusFoldsAsUpstreamFolds(t *testing.T) {
	dir := corpus(t)
	base := corpusLayer(t, filepath.Join(dir, "base.cordis.patch.yml"))
	baseRows, err := compose.Fold([]compose.Layer{base}, compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, beforeIDs := corpusRows(t, baseRows)

	files, _ := filepath.Glob(filepath.Join(dir, "expected", "*.json"))
	if len(files) != 72 {
		t.Fatalf("the corpus has %d files, want 72", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			File     string
			Error    string
			Warnings []string
			Inserted []string
			Changed  []map[string]any
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		t.Run(want.File, func(t *testing.T) {
			t.Parallel()
			layers := []compose.Layer{base, corpusLayer(t, filepath.Join(dir, "patches", want.File))}
			rows, err := compose.Fold(layers, compose.FoldOptions{AllowUnknownIDs: true})
			if want.Error != "" {
				if err == nil || !strings.Contains(err.Error(), "a patch is a list") {
					t.Fatalf("got %v, want the fault for %q", err, want.Error)
				}
				return
			}
			if err != nil {
				t.Fatalf("with unknown ids allowed: %v", err)
			}
			after, ids := corpusRows(t, rows)
			changed := map[string]any{}
			for id, row := range after {
				if !cmp.Equal(row, before[id]) {
					changed[id] = row
				}
			}
			wantChanged := map[string]any{}
			for _, row := range want.Changed {
				wantChanged[row["id"].(string)] = row
			}
			if d := cmp.Diff(wantChanged, changed); d != "" {
				t.Errorf("changed rows, want - got +:\n%s", d)
			}
			if inserted := ids[len(beforeIDs):]; !slices.Equal(inserted, want.Inserted) {
				t.Errorf("inserted: got %q, want %q", inserted, want.Inserted)
			}

			_, err = compose.Fold(layers, compose.FoldOptions{})
			strict(t, err, want.Warnings)
		})
	}
}

// TestExpressionsOfTheCorpusAreFaultsAtTheirPlace has each of them as a setting: it is evaluated, or refused where it stands.
func TestExpressionsOfTheCorpusAreFaultsAtTheirPlace(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(corpus(t), "expressions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	expressions := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(expressions) != 86 {
		t.Fatalf("the corpus has %d expressions, want 86", len(expressions))
	}
	evaluated, refused := 0, 0
	for _, e := range expressions {
		patch := layer("p", "- insert:\n    - id: r\n      name: stub\n      disabled: !!js |-\n        "+e+"\n")
		_, err := compose.MakePlan([]compose.Layer{patch}, modules(t), compose.Machine{Platform: "linux", Arch: "x64", Dir: "/w", Home: "/h"}, compose.FoldOptions{})
		faults, ok := errors.AsType[*compose.Faults](err)
		if err == nil {
			evaluated++
			continue
		}
		refused++
		if !ok || len(faults.Diagnostics()) != 1 {
			t.Errorf("%s: got %v, want one fault", e, err)
			continue
		}
		if d := faults.Diagnostics()[0]; d.Slug != "expression" || d.Place.File != "p.yaml" || d.Place.Line < 4 || d.Place.Column < 7 {
			t.Errorf("%s: got %v, want a fault at the expression", e, d)
		}
	}
	t.Logf("%d are evaluated, %d refused", evaluated, refused)
	if evaluated == 0 || refused == 0 {
		t.Errorf("%d are evaluated and %d refused", evaluated, refused)
	}
}

// strict expects one fault with a place for each warning of upstream.
func strict(t *testing.T, err error, warnings []string) {
	t.Helper()
	var faults *compose.Faults
	if !errors.As(err, &faults) {
		if len(warnings) > 0 {
			t.Errorf("strictly, got no fault for %q", warnings)
		}
		return
	}
	skips := 0
	for _, d := range faults.Diagnostics() {
		switch {
		case d.Place.Line == 0:
			t.Errorf("strictly, a fault without a line: %v", d)
		case d.Slug == "unknown-id" || d.Slug == "name-mismatch":
			skips++
		case d.Slug != "duplicate-id":
			t.Errorf("strictly, got %v", d)
		}
	}
	if skips != len(warnings) {
		t.Errorf("strictly, got %d unknown ids and names, want %d:\n%v", skips, len(warnings), err)
	}
}
