// Package deployments_test composes each of the patch files here and runs a command that shows what it is for.
package deployments_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dsh/composetest"
	"dsh/internal/source"
	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { composetest.Main(m) }

// build builds the program of a main package and returns its path.
func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, out)
	}
	return program
}

// world is a program with a home and a workspace of its own.
type world struct {
	*testing.T
	program, patch string
	home, work     string
	env            []string
}

// dsh runs a command line with the patch, or without it, and returns what it printed and its exit status.
func (w *world) dsh(patched bool, args ...string) (stdout string, status int) {
	w.Helper()
	if patched {
		args = append([]string{"--patch", w.patch}, args...)
	}
	cmd := exec.CommandContext(w.Context(), w.program, args...)
	cmd.Dir = w.work
	cmd.Env = append(append(os.Environ(), "DSH_HOME="+w.home), w.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		w.Fatalf("%v", err)
	}
	if ok {
		status = exit.ExitCode()
	}
	if status == 2 || status == 125 {
		w.Errorf("dsh %q: exit status %d\n%s", args, status, stderr.String())
	}
	return string(out), status
}

// result is what `dsh exec --json` prints.
type result struct {
	ExitCode       *int
	TimeoutMs      int64
	Survivors      int
	Stdout, Stderr struct{ Text string }
	Sandbox        *struct {
		Mode, Backend string
		Denied        bool
	}
}

func (w *world) exec(patched bool, command string) (r result) {
	w.Helper()
	out, _ := w.dsh(patched, "exec", "--json", command)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.Fatalf("%s: %v", out, err)
	}
	return r
}

func (r result) exit() int {
	if r.ExitCode == nil {
		return -1
	}
	return *r.ExitCode
}

// deployment is a patch file with what shows its effect.
type deployment struct {
	main, patch string
	show        func(*world)
}

var deployments = []deployment{
	{"../../cmd/dsh", "read-only-reviewer.yaml", readOnlyReviewer},
	{"../../cmd/dsh", "no-network.yaml", noNetwork},
	{"../../cmd/dsh", "longer-timeouts.yaml", longerTimeouts},
	{"../../cmd/dsh", "landlock-only.yaml", landlockOnly},
	{"../../cmd/dsh", "end-survivors.yaml", endSurvivors},
	{"../../cmd/dsh", "throwaway-container.yaml", throwawayContainer},
	{"../../cmd/dsh", "bash-local.yaml", bashLocal},
	{"../../cmd/dsh", "keep-token.yaml", keepToken},
	{"../custom-module", "../custom-module/deployments/ticket.yaml", ticket},
	{"../custom-module", "../custom-module/deployments/audited.yaml", audited},
}

func TestDeployments(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	programs := map[string]string{}
	for _, d := range deployments {
		if programs[d.main] == "" {
			programs[d.main] = build(t, d.main)
		}
		t.Run(filepath.Base(d.patch), func(t *testing.T) {
			patch, err := filepath.Abs(d.patch)
			if err != nil {
				t.Fatal(err)
			}
			w := &world{T: t, program: programs[d.main], patch: patch, home: t.TempDir(), work: workspace(t)}
			w.validate()
			d.show(w)
		})
	}
}

// TestEveryDeploymentIsShown fails for a patch file that the table does not have.
func TestEveryDeploymentIsShown(t *testing.T) {
	for _, pattern := range []string{"*.yaml", "../custom-module/deployments/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !slices.ContainsFunc(deployments, func(d deployment) bool { return d.patch == file }) {
				t.Errorf("no test of %s", file)
			}
		}
	}
}

// workspace makes a directory to work in. It is not under /tmp, of which a confined command has one of its own.
func workspace(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(here, "workspace-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	return work
}

func readOnlyReviewer(w *world) {
	if r := w.exec(false, "echo a > file"); r.exit() != 0 {
		w.Fatalf("without the patch: %+v", r)
	}
	if r := w.exec(true, "cat file"); r.Stdout.Text != "a\n" {
		w.Errorf("reading: %+v", r)
	}
	if r := w.exec(true, "echo b > file"); r.exit() == 0 || !r.Sandbox.Denied || r.Sandbox.Mode != "read-only" {
		w.Errorf("writing: %+v, %+v", r, r.Sandbox)
	}
}

func noNetwork(w *world) {
	testkit.NeedProgram(w.T, "bwrap")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer l.Close()
	connect := "exec 3<>/dev/tcp/" + strings.Replace(l.Addr().String(), ":", "/", 1)
	if r := w.exec(false, connect); r.exit() != 0 {
		w.Fatalf("without the patch: %+v", r)
	}
	if r := w.exec(true, connect); r.exit() == 0 || !strings.Contains(r.Stderr.Text, "/dev/tcp/") {
		w.Errorf("with the patch: %+v", r)
	}
}

func longerTimeouts(w *world) {
	if before, after := w.exec(false, "true"), w.exec(true, "true"); before.TimeoutMs != 120_000 || after.TimeoutMs != 1_800_000 {
		w.Errorf("got %d ms before and %d ms after", before.TimeoutMs, after.TimeoutMs)
	}
}

func landlockOnly(w *world) {
	r := w.exec(true, "echo a > file; cat file; echo b > ../outside")
	if r.Stdout.Text != "a\n" || r.exit() == 0 || r.Sandbox.Backend != "landlock" {
		w.Errorf("got %+v, %+v", r, r.Sandbox)
	}
}

func endSurvivors(w *world) {
	const command = "sleep 30611 > /dev/null 2>&1 &"
	if before, after := w.exec(false, command), w.exec(true, command); before.Survivors != 1 || after.Survivors != 0 {
		w.Errorf("got %d survivors before and %d after", before.Survivors, after.Survivors)
	}
}

func throwawayContainer(w *world) {
	outside := filepath.Join(w.home, "outside")
	if r := w.exec(true, "echo a > "+outside); r.exit() == 0 || r.Sandbox.Mode != "workspace-write" {
		w.Errorf("on another machine: %+v, %+v", r, r.Sandbox)
	}
	w.env = append(w.env, "THROWAWAY=1")
	if r := w.exec(true, "echo a > "+outside); r.exit() != 0 || r.Sandbox.Mode != "danger-full-access" {
		w.Errorf("on a machine to be thrown away: %+v, %+v", r, r.Sandbox)
	}
}

func bashLocal(w *world) {
	if before, after := w.exec(false, "true"), w.exec(true, "true"); before.Sandbox == nil || after.Sandbox != nil {
		w.Errorf("got the sandboxes %+v before and %+v after", before.Sandbox, after.Sandbox)
	}
	if r := w.exec(true, "echo a > ../outside"); r.exit() != 0 {
		w.Errorf("got %+v", r)
	}
}

func keepToken(w *world) {
	w.env = append(w.env, "GH_TOKEN=t", "OTHER_TOKEN=t")
	const command = `echo "${GH_TOKEN-none} ${OTHER_TOKEN-none}"`
	if before, after := w.exec(false, command), w.exec(true, command); before.Stdout.Text != "none none\n" || after.Stdout.Text != "t none\n" {
		w.Errorf("got %q before and %q after", before.Stdout.Text, after.Stdout.Text)
	}
}

func ticket(w *world) {
	w.env = append(w.env, "TRACKER_TICKET=ABC-7")
	if r := w.exec(true, "echo on $DSH_TICKET"); r.Stdout.Text != "on ABC-7\n" {
		w.Errorf("got %+v", r)
	}
	if r := w.exec(false, "echo on $DSH_TICKET"); r.Stdout.Text != "on\n" {
		w.Errorf("without the patch: %+v", r)
	}
}

func audited(w *world) {
	if r := w.exec(true, "exit 3"); r.exit() != 3 {
		w.Errorf("got %+v", r)
	}
	if text, err := os.ReadFile(filepath.Join(w.home, "audit.jsonl")); err != nil || !strings.Contains(string(text), `"command":"exit 3"`) {
		w.Errorf("the record: %q, %v", text, err)
	}
	// A timeout of the user's own is over the cap of this module too.
	out, _ := w.dsh(true, "exec", "--timeout", "20m", "--json", "true")
	if !strings.Contains(out, `"timeoutMs":1200000,`) {
		w.Errorf("with --timeout 20m: %s", out)
	}
}

// validate checks the patch against the schema that the program prints for it.
func (w *world) validate() {
	w.Helper()
	printed, _ := w.dsh(false, "config", "schema")
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(printed))
	if err != nil {
		w.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("patch.json", schema); err != nil {
		w.Fatal(err)
	}
	compiled, err := c.Compile("patch.json")
	if err != nil {
		w.Fatal(err)
	}
	text, err := os.ReadFile(w.patch)
	if err != nil {
		w.Fatal(err)
	}
	node, err := source.Parse(w.patch, text)
	if err != nil {
		w.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(node.JSON()))
	if err == nil {
		err = compiled.Validate(v)
	}
	if err != nil {
		w.Errorf("the schema refuses %s: %v", w.patch, err)
	}
}
