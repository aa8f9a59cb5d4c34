package compose

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"

	"dsh/internal/diag"
	"dsh/module"
	"dsh/module/key"
)

// Capabilities for rows of tests.
type (
	alpha interface{ Alpha() }
	beta  interface{ Beta() }
	gamma interface{ Gamma() }
	delta interface{ Delta() }
)

// thing is all of them.
type thing struct{ row string }

func (thing) Alpha() {}
func (thing) Beta()  {}
func (thing) Gamma() {}
func (thing) Delta() {}

type noConfig struct{}

// define makes a module with the constructor, a function as module.Spec wants it.
func define(name string, constructor any) module.Module {
	return module.Define(module.Spec[noConfig]{Name: name, Constructor: constructor})
}

// The constructors say by their types what the rows of graphs below need and provide.
var (
	toAlpha      = func() alpha { return thing{} }
	toBoth       = func() (alpha, beta) { return thing{}, thing{} }
	alphaToBeta  = func(alpha) beta { return thing{} }
	betaToGamma  = func(beta) gamma { return thing{} }
	gammaToAlpha = func(gamma) alpha { return thing{} }
	gammaToDelta = func(gamma) delta { return thing{} }
	betaToAlpha  = func(beta) alpha { return thing{} }
	fromAlpha    = func(alpha) {}
	maybeAlpha   = func(struct {
		fx.In
		A alpha `optional:"true"`
	},
	) beta {
		return thing{}
	}
)

func TestOrder(t *testing.T) {
	t.Parallel()
	type rows []struct {
		id          string
		constructor any
	}
	for name, c := range map[string]struct {
		rows     rows
		disabled rows
		unused   rows
		order    string
		faults   []string // message, then a line with the hint
	}{
		"rows that need nothing keep the order of the layers": {
			rows:  rows{{"c", func() {}}, {"a", func() {}}, {"b", func() {}}},
			order: "c a b",
		},
		"what a row needs starts before it, the rest stays": {
			rows:  rows{{"last", betaToGamma}, {"free", func() {}}, {"middle", alphaToBeta}, {"first", toAlpha}},
			order: "free first middle last",
		},
		"an optional need waits for its row": {
			rows:  rows{{"user", maybeAlpha}, {"maker", toAlpha}},
			order: "maker user",
		},
		"an optional need that nobody provides is nobody's fault": {
			rows:  rows{{"user", maybeAlpha}},
			order: "user",
		},
		"an optional need yields where it closed a cycle": {
			rows:  rows{{"maker", betaToAlpha}, {"user", maybeAlpha}},
			order: "user maker",
		},
		"a need that no module provides": {
			rows:   rows{{"user", fromAlpha}},
			order:  "user",
			faults: []string{`at user: row "user" needs word (compose.alpha), which no enabled row provides [missing]`, "no module of this build provides it"},
		},
		"a need that a disabled row would provide": {
			rows:     rows{{"user", fromAlpha}},
			disabled: rows{{"maker", toAlpha}},
			unused:   rows{{"other", toAlpha}},
			order:    "user",
			faults: []string{
				`at user: row "user" needs word (compose.alpha), which no enabled row provides [missing]`,
				`row "maker" provides it but is disabled: process.platform === 'maker' (reason of maker)`,
			},
		},
		"a need that a module without a row would provide": {
			rows:   rows{{"user", fromAlpha}},
			unused: rows{{"spare", toAlpha}},
			order:  "user",
			faults: []string{
				`at user: row "user" needs word (compose.alpha), which no enabled row provides [missing]`,
				`module "spare" provides it, but no row mounts it`,
			},
		},
		"two rows that provide the same": {
			rows:  rows{{"one", toAlpha}, {"two", toAlpha}, {"user", fromAlpha}},
			order: "one two user",
			faults: []string{
				`at two: rows "one" and "two" both provide word (compose.alpha) [doubled]`,
				`disable one: "one" is inserted at at one`,
			},
		},
		"two rows that provide the same twice over are one fault": {
			rows:  rows{{"one", toBoth}, {"two", toBoth}},
			order: "one two",
			faults: []string{
				`at two: rows "one" and "two" both provide word (compose.alpha) and compose.beta [doubled]`,
				`disable one: "one" is inserted at at one`,
			},
		},
		"three rows that provide the same": {
			rows:  rows{{"one", toAlpha}, {"two", toAlpha}, {"three", toAlpha}},
			order: "one two three",
			faults: []string{
				`at two: rows "one" and "two" both provide word (compose.alpha) [doubled]`,
				`disable one: "one" is inserted at at one`,
				`at three: rows "one" and "three" both provide word (compose.alpha) [doubled]`,
				`disable one: "one" is inserted at at one`,
			},
		},
		"rows that need each other": {
			rows:  rows{{"free", func() {}}, {"ab", alphaToBeta}, {"bc", betaToGamma}, {"ca", gammaToAlpha}, {"behind", gammaToDelta}},
			order: "free ab bc ca behind",
			faults: []string{
				`at ab: rows need each other: "ab" needs word (compose.alpha) from "ca", "ca" needs compose.gamma from "bc", "bc" needs compose.beta from "ab" [cycle]`,
				"disable one, or replace it with a row whose module does not need the next",
			},
		},
		"faults come in the order of their rows": {
			rows:  rows{{"user", betaToGamma}, {"one", toAlpha}, {"two", toAlpha}, {"more", gammaToDelta}},
			order: "user one two more",
			faults: []string{
				`at user: row "user" needs compose.beta, which no enabled row provides [missing]`,
				"no module of this build provides it",
				`at two: rows "one" and "two" both provide word (compose.alpha) [doubled]`,
				`disable one: "one" is inserted at at one`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []module.Module
			var mounts []Mount
			for _, r := range c.rows {
				m := define(r.id, r.constructor)
				all = append(all, m)
				place := diag.Place{File: "at " + r.id}
				mounts = append(mounts, Mount{ID: r.id, Module: m, Place: place, mounting: mounting{place: place, word: "inserted"}})
			}
			var disabled []disabledRow
			for _, r := range c.disabled {
				m := define(r.id, r.constructor)
				all = append(all, m)
				disabled = append(disabled, disabledRow{
					ID: r.id, Module: m, Reason: fmt.Sprintf("process.platform === '%s'", r.id), ReasonPlace: diag.Place{File: "reason of " + r.id},
				})
			}
			for _, r := range c.unused {
				all = append(all, define(r.id, r.constructor))
			}
			reg, err := module.NewRegistry(module.Bundle{Modules: all, Capabilities: []key.Key{key.Of[alpha]("word")}})
			if err != nil {
				t.Fatal(err)
			}

			ordered, faults := order(mounts, disabled, reg)

			var ids, told []string
			for _, m := range ordered {
				ids = append(ids, m.ID)
			}
			for _, f := range faults {
				told = append(told, f.Error(), f.Hint)
			}
			if got := strings.Join(ids, " "); got != c.order {
				t.Errorf("got the order %q, want %q", got, c.order)
			}
			if d := cmp.Diff(c.faults, told); d != "" {
				t.Errorf("faults (want -, got +):\n%s", d)
			}
		})
	}
}

// With any set of rows, in any layer order: everything starts once, nothing before what it needs, and a row that waits for
// nothing is not overtaken by one that stands behind it.
func TestOrderOfAnyRows(t *testing.T) {
	t.Parallel()
	kinds := []any{toAlpha, alphaToBeta, betaToGamma, gammaToDelta, maybeAlpha, fromAlpha, betaToAlpha, func() {}}
	reg, err := module.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var mounts []Mount
		layer := map[string]int{}
		for i := range 1 + random.IntN(12) {
			id := fmt.Sprintf("r%d", i)
			mounts = append(mounts, Mount{ID: id, Module: define("x", kinds[random.IntN(len(kinds))])})
			layer[id] = i
		}
		ordered, faults := order(mounts, nil, reg)

		at := map[string]int{}
		for i, m := range ordered {
			at[m.ID] = i
		}
		if len(at) != len(mounts) || len(ordered) != len(mounts) {
			t.Fatalf("got %v of %v", at, layer)
		}
		if slices.ContainsFunc(faults, func(d *diag.Diagnostic) bool { return d.Slug == "cycle" }) {
			continue
		}
		for i, m := range ordered {
			for _, n := range m.Module.Needs() {
				for _, p := range ordered[i+1:] {
					if !n.Optional && slices.Contains(p.Module.Provides(), n.Type) {
						t.Fatalf("%s starts before %s, which provides what it needs: %v", m.ID, p.ID, at)
					}
				}
			}
			if len(m.Module.Needs()) > 0 {
				continue
			}
			for _, before := range ordered[:i] {
				if layer[before.ID] > layer[m.ID] {
					t.Fatalf("%s overtakes %s, which waits for nothing: %v", before.ID, m.ID, at)
				}
			}
		}
	}
}
