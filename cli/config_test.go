package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/module"
)

type noConfig struct{}

// looking are the command lines that look at a composition.
var looking = [][]string{
	{"config", "check"},
	{"config", "dump"},
	{"config", "dump", "--layers"},
	{"config", "dump", "--origins"},
	{"config", "explain", "tripwire"},
	{"--set", "bash-sandbox.graceMs=5", "config", "diff"},
	{"config", "schema"},
	{"graph"},
	{"graph", "--format", "mermaid"},
	{"modules"},
	{"profile", "list"},
	{"__complete", "config", "explain", ""},
}

func TestLookingStartsNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("DSH_HOME", home)
	b := build()
	b.Prepare = func() error {
		t.Error("the process was prepared for others")
		return nil
	}
	b.Bundles = append(b.Bundles, module.Bundle{
		Name: "tripwire", File: "tripwire.yaml", Patch: []byte("- insert: [{id: tripwire, name: tripwire}]"),
		Modules: []module.Module{module.Define(module.Spec[noConfig]{Name: "tripwire", Constructor: func(noConfig) error {
			t.Error("a row was constructed")
			return nil
		}})},
	})
	b.Profiles[0].Bundles = append(b.Profiles[0].Bundles, "tripwire")
	children := testkit.Children()
	for _, args := range looking {
		run(t, b, args...)
	}
	if left := testkit.Children(); !slices.Equal(left, children) {
		t.Errorf("processes: %v, before: %v", left, children)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want none", home, err)
	}
}

// program builds the program as it ships.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsh")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "dsh/cmd/dsh").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// TestLookingIsQuick measures the program as it ships. The best of several runs counts: a busy machine is no fault of it.
func TestLookingIsQuick(t *testing.T) {
	const limit = 60 * time.Millisecond
	dsh := program(t)
	for _, args := range looking {
		args = slices.Clone(args)
		if i := slices.Index(args, "tripwire"); i >= 0 {
			args[i] = "tool-bash"
		}
		best := time.Hour
		for range 60 {
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), dsh, args...)
			cmd.Stderr = &stderr
			begin := time.Now()
			if err := cmd.Run(); err != nil {
				t.Fatalf("dsh %v: %v\n%s", args, err, stderr.String())
			}
			if best = min(best, time.Since(begin)); best < limit {
				break
			}
		}
		t.Logf("%v: %v", args, best)
		if best >= limit {
			t.Errorf("dsh %v takes %v", args, best)
		}
	}
}

func TestGraphvizDrawsTheGraph(t *testing.T) {
	dot := testkit.NeedProgram(t, "dot")
	b := build()
	b.Bundles = append(b.Bundles, module.Bundle{
		Name: "odd", File: "odd.yaml", Patch: []byte(`- insert: [{id: "an \"odd\" \\ id", name: odd}]`),
		Modules: []module.Module{module.Define(module.Spec[noConfig]{Name: "odd", Constructor: func(noConfig) error { return nil }})},
	})
	b.Profiles[0].Bundles = append(b.Profiles[0].Bundles, "odd")
	cmd := exec.CommandContext(t.Context(), dot, "-Tplain")
	cmd.Stdin = strings.NewReader(run(t, b, "graph"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("dot: %v\n%s", err, stderr.String())
	}
	plain := string(out)
	for _, want := range []string{`node tools `, `node "bash-sandbox" `, `edge "bash-sandbox" "tool-bash" `, `node "an \"odd\" \\ id"`} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %s in what dot drew:\n%s", want, plain)
		}
	}
	for line := range strings.Lines(plain) {
		if off := strings.HasPrefix(line, `node "bash-local" `); strings.HasPrefix(line, "node ") && off != strings.Contains(line, "gray") {
			t.Errorf("grey is for disabled rows: %s", line)
		}
	}
}

func TestAVariableIsNotExplained(t *testing.T) {
	t.Setenv("PLACE", "/somewhere/private")
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte("- {id: bash-sandbox, config: {cwd: !!js process.env.PLACE}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config", "explain", "bash-sandbox"}, {"config", "explain", "bash-sandbox", "--json"}, {"config", "dump", "--layers"}, {"config", "diff"}} {
		out := run(t, build(), append([]string{"--patch", file}, args...)...)
		if strings.Contains(out, "private") {
			t.Errorf("dsh %v prints a variable:\n%s", args, out)
		}
		if args[1] == "explain" && !strings.Contains(out, "(from the environment)") {
			t.Errorf("dsh %v does not say where the value is from:\n%s", args, out)
		}
	}
}

func TestExplainAsJSON(t *testing.T) {
	var row struct {
		ID, Module, Layer string
		Needs             []struct{ Capability, From string }
		Settings          []struct{ Key, Value, Default, Layer, Place string }
	}
	out := run(t, build(), "--set", "bash-sandbox.graceMs=7", "config", "explain", "bash-sandbox", "--json")
	if err := json.Unmarshal([]byte(out), &row); err != nil {
		t.Fatal(err)
	}
	if row.ID != "bash-sandbox" || row.Layer != "base" || len(row.Needs) == 0 || row.Needs[0].From == "" {
		t.Errorf("got %+v", row)
	}
	for _, s := range row.Settings {
		if s.Key == "graceMs" && (s.Value != "7" || s.Default != "3000" || s.Layer != "--set") {
			t.Errorf("got %+v", s)
		}
	}
}

func TestCompletion(t *testing.T) {
	home := t.TempDir()
	t.Setenv("DSH_HOME", home)
	run(t, build(), "profile", "new", "mine")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--profile", ""}, "base\nmine\n:4"},
		{[]string{"config", "explain", ""}, strings.Join(rowIDs(t), "\n") + "\n:4"},
		{[]string{"config", "explain", "tools", ""}, ":4"},
		{[]string{"--set", "tools"}, strings.Join(rowIDs(t), ".\n") + ".\n:6"},
		{[]string{"--set", "tool-bash."}, "tool-bash.enableRunInBackground=\n:6"},
		{[]string{"graph", "--format", ""}, "dot\nmermaid\n:4"},
	} {
		if got := strings.TrimSpace(run(t, build(), append([]string{"__complete"}, c.args...)...)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.args, got, c.want)
		}
	}
}

func rowIDs(t *testing.T) (ids []string) {
	t.Helper()
	var rows []struct{ ID string }
	if err := json.Unmarshal([]byte(run(t, build(), "config", "dump", "--format", "json")), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}
