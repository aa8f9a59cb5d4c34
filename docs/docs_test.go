// Package docs_test keeps the documents true: their links lead somewhere, and what the README shows is what happens.
package docs_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var (
	fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	code  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	title = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../*.md", "*.md", "../examples/*.md", "../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 4 {
		t.Fatalf("only %d pages: %v", len(pages), pages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := code.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(t, target), m[2]) {
				t.Errorf("%s links to %s, which has no title for %s", page, target, m[2])
			}
		}
	}
}

// anchors returns what a link can name in a page: its titles, as hosts of repositories spell them.
func anchors(t *testing.T, page string) (all []string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		all = append(all, "#"+anchor)
	}
	return all
}

// TestCommandsOfThePagesWork runs each line of the sh blocks of the pages about extending, in the example and with a patch,
// and a profile in place of NAME.
func TestCommandsOfThePagesWork(t *testing.T) {
	testkit.NeedProgram(t, "dot")
	dir := t.TempDir()
	build(t, filepath.Join(dir, "bin", "dsh"))
	if err := os.WriteFile(filepath.Join(dir, "my.yaml"), []byte("- {id: bash-sandbox, config: {graceMs: 500}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../examples/custom-module")
	if err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, page := range []string{"custom-builds.md", "../examples/custom-module/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		commands := command.FindAllString(string(text), -1)
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "sh" {
				commands = append(commands, strings.Split(strings.TrimSpace(m[2]), "\n")...)
			}
		}
		for _, line := range commands {
			line = strings.ReplaceAll(strings.Trim(line, "`"), "NAME", "base")
			if line == "go test ./..." {
				continue // make examples does, and longer
			}
			run++
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", line)
			cmd.Dir = dir
			if strings.HasPrefix(line, "go ") {
				cmd.Dir = example
			}
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "HOME="+dir, "DSH_HOME=",
				"GOPATH="+goEnv(t, "GOPATH"), "GOCACHE="+goEnv(t, "GOCACHE"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", page, line, err, out)
			}
		}
	}
	if run < 12 {
		t.Errorf("%d commands were found", run)
	}
}

// command is one in running text: of the program, or of a build of one's own.
var command = regexp.MustCompile("`(?:mkdir [^`]*|dsh|go run \\.) (?:[^`\n]+)`")

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestReadme runs the README: a yaml block that begins with a comment naming a file is that file, and a console block is
// a command and what it prints.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build(t, filepath.Join(dir, "bin", "dsh"))
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		switch language, body := m[1], m[2]; language {
		case "yaml":
			name, _, _ := strings.Cut(strings.Fields(body)[1], ":")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		case "console":
			command, want, _ := strings.Cut(strings.TrimPrefix(body, "$ "), "\n")
			commands++
			cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
			cmd.Dir = dir
			if strings.HasPrefix(command, "go run") {
				cmd.Dir = root
			}
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "DSH_HOME="+filepath.Join(dir, "home"))
			var got bytes.Buffer
			cmd.Stdout, cmd.Stderr = &got, &got
			_ = cmd.Run() // the README shows failures too
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("$ %s (-README +real):\n%s", command, diff)
			}
		}
	}
	if commands < 4 {
		t.Errorf("the README shows %d commands; the test does not find them", commands)
	}
}

var update = flag.Bool("update", false, "write modules.md")

// TestModulesPage compares the page with what the program prints.
func TestModulesPage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dsh")
	build(t, program)
	got, err := exec.CommandContext(t.Context(), program, "modules", "--markdown").Output()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("modules.md", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("modules.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(got)); diff != "" {
		t.Errorf("go test ./docs -update writes it anew (-modules.md +real):\n%s", diff)
	}
}

func build(t *testing.T, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", to, "dsh/cmd/dsh").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}
