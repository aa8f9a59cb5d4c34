package compose_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dsh/compose"
	"dsh/internal/diag"
)

const stack = `
- insert:
    - {id: subprocess, name: subprocess-local}
    - {id: bash, name: bash-local, config: {timeoutMs: 5, limits: {cpus: 2, memoryMax: 1}}}
    - {id: tool, name: tool-bash}
    - {id: policy, name: sandbox-policy, disabled: !!js 'process.env.OFF === "1"'}
`

func TestChangesAreThoseOfTheirLayer(t *testing.T) {
	t.Parallel()
	changes, err := compose.Changes([]compose.Layer{
		layer("base", stack),
		layer("none", ""),
		layer("same", "- {id: bash, name: '@deepseek-ai/dsh-bash-local', config: {timeoutMs: 5, limits: {cpus: 2, memoryMax: 1}}}"),
		layer("more", "- {id: bash, config: {timeoutMs: 7, limits: {cpus: !!js 1 + 1}, cwd: /}}\n- {id: policy, disabled: true}"),
	}, modules(t), compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []compose.LayerChanges{
		{Name: "base", File: "base.yaml", Rows: []compose.RowChange{
			{ID: "subprocess", Module: "subprocess-local", Kind: compose.Inserted},
			{ID: "bash", Module: "bash-local", Kind: compose.Inserted, Fields: []compose.FieldChange{
				{Path: "config.timeoutMs", New: "5"}, {Path: "config.limits.cpus", New: "2"}, {Path: "config.limits.memoryMax", New: "1"},
			}},
			{ID: "tool", Module: "tool-bash", Kind: compose.Inserted},
			{ID: "policy", Module: "sandbox-policy", Kind: compose.Inserted, Fields: []compose.FieldChange{
				{Path: "disabled", New: `!!js process.env.OFF === "1"`},
			}},
		}},
		{Name: "none", File: "none.yaml"},
		{Name: "same", File: "same.yaml"},
		{Name: "more", File: "more.yaml", Rows: []compose.RowChange{
			{ID: "bash", Module: "bash-local", Kind: compose.Changed, Fields: []compose.FieldChange{
				{Path: "config.timeoutMs", Old: "5", New: "7"},
				{Path: "config.limits.cpus", Old: "2", New: "!!js 1 + 1"},
				{Path: "config.cwd", New: `"/"`},
				{Path: "config.limits.memoryMax", Old: "1"},
			}},
			{ID: "policy", Module: "sandbox-policy", Kind: compose.Changed, Fields: []compose.FieldChange{
				{Path: "disabled", Old: `!!js process.env.OFF === "1"`, New: "true"},
			}},
		}},
	}
	if d := cmp.Diff(want, changes, cmpopts.IgnoreTypes(diag.Place{})); d != "" {
		t.Errorf("(want -, got +):\n%s", d)
	}
	if at := changes[3].Rows[0].Fields[0].Place.String(); at != "more.yaml:1:23" {
		t.Errorf("the change is said to be at %s", at)
	}
}

func TestRowsThatGoWithTheirGroupAreChanges(t *testing.T) {
	t.Parallel()
	changes, err := compose.Changes([]compose.Layer{
		layer("a", "- insert: [{id: g, group: true, config: [{id: x, name: stub}, {id: y, name: stub}]}]"),
		layer("b", "- {id: g, config: [{id: y, name: stub}, {id: z, name: stub}]}"),
	}, modules(t), compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range changes[1].Rows {
		got = append(got, string(r.Kind)+" "+r.ID)
	}
	if d := cmp.Diff([]string{"inserted z", "removed x"}, got); d != "" {
		t.Errorf("(want -, got +):\n%s", d)
	}
}

func TestChangesOfFaultyLayersAreTheFaults(t *testing.T) {
	t.Parallel()
	if _, err := compose.Changes([]compose.Layer{layer("a", "- {id: nobody}")}, modules(t), compose.FoldOptions{}); err == nil {
		t.Error("no fault")
	}
}

func effects(t *testing.T, before, after string) map[string]string {
	t.Helper()
	var plans []*compose.Plan
	for _, text := range []string{before, after} {
		p, err := compose.MakePlan([]compose.Layer{layer("base", stack), layer("more", text)}, modules(t), linux(), compose.FoldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	got := map[string]string{}
	for _, e := range compose.Diff(plans[0], plans[1]) {
		text := string(e.Kind)
		for _, f := range e.Fields {
			text += " " + f.Path
		}
		for _, id := range e.Through {
			text += " <" + id
		}
		got[e.ID] = text
	}
	return got
}

func TestAPlanRestartsWhatChangedAndWhatNeedsIt(t *testing.T) {
	t.Parallel()
	const sandboxed = "- {id: bash, disabled: true}\n- insert: [{id: sandboxed, name: bash-sandbox}]"
	for _, c := range []struct {
		name, before, after string
		want                map[string]string
	}{
		{"nothing", "", "[]", map[string]string{"subprocess": "keep", "bash": "keep", "tool": "keep", "policy": "keep"}},
		{
			"a setting", "", "- {id: bash, config: {timeoutMs: 6}}",
			map[string]string{
				"subprocess": "keep", "bash": "restart config.timeoutMs config.limits.cpus config.limits.memoryMax", "tool": "restart <bash", "policy": "keep",
			},
		},
		{
			"the same setting in other words", "", "- {id: bash, config: {timeoutMs: !!js 2 + 3, limits: {cpus: 2, memoryMax: 1}}}",
			map[string]string{"subprocess": "keep", "bash": "keep config.timeoutMs", "tool": "keep", "policy": "keep"},
		},
		{
			"a provider for another", "", sandboxed,
			map[string]string{
				"subprocess": "keep", "bash": "stop disabled", "sandboxed": "start", "tool": "restart <bash <sandboxed", "policy": "keep",
			},
		},
		{
			"and back", sandboxed, "",
			map[string]string{"subprocess": "keep", "bash": "start disabled", "sandboxed": "stop", "tool": "restart <sandboxed <bash", "policy": "keep"},
		},
		{
			"a row that is off", "- {id: policy, disabled: true}", "- {id: policy, disabled: true, config: {strict: true}}",
			map[string]string{"subprocess": "keep", "bash": "keep", "tool": "keep", "policy": "off config.strict"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, effects(t, c.before, c.after)); d != "" {
				t.Errorf("(want -, got +):\n%s", d)
			}
		})
	}
}

func TestTheGraphHasEveryRowAndWhatItTakes(t *testing.T) {
	t.Parallel()
	p, err := compose.MakePlan([]compose.Layer{layer("base", stack), layer("more", "- {id: policy, disabled: !!js true}")}, modules(t), linux(), compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g := p.Graph()
	var rows []string
	for _, r := range g.Rows {
		text := r.ID + " " + r.Layer
		for _, l := range r.Patched {
			text += " +" + l
		}
		if r.Disabled {
			text += " off: " + r.Reason + " " + r.ReasonPlace.String()
		}
		rows = append(rows, text)
	}
	if d := cmp.Diff([]string{"subprocess base", "bash base", "tool base", "policy base +more off: true more.yaml:1:26"}, rows); d != "" {
		t.Errorf("rows (want -, got +):\n%s", d)
	}
	want := []compose.Edge{
		{From: "subprocess", To: "bash", Capability: "subprocess (compose_test.Runtime)"},
		{From: "bash", To: "tool", Capability: "shell (compose_test.Executor)"},
	}
	if d := cmp.Diff(want, g.Edges); d != "" {
		t.Errorf("edges (want -, got +):\n%s", d)
	}
	if r, ok := p.Row("policy"); !ok || r.Module.Name() != "sandbox-policy" {
		t.Errorf("got %+v, %v", r, ok)
	}
	if _, ok := p.Row("nobody"); ok {
		t.Error("a row that there is not")
	}
}
