package compose_test

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"dsh/compose"
	"dsh/internal/diag"
	"dsh/module"
)

var update = flag.Bool("update", false, "write the goldens")

// TestFaultsReadWell compares reports with testdata/faults/*.txtar. A plan without a fault is started and stopped. An archive is named after its slug, with "." and a
// word behind it where a slug has several. Its files are laid out in a directory; `args` has one argument a line and
// defaults to each *.yaml as a --patch; `want` is the report. An archive with several slugs has them in `slugs`.
func TestFaultsReadWell(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	slug, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), ".")
	slugs, want := []string{slug}, ""
	scene := scene{dir: t.TempDir()}
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
			want = string(f.Data)
		case "slugs":
			slugs = strings.Fields(string(f.Data))
		case "args":
			scene.args = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		default:
			scene.write(t, f.Name, f.Data)
			if filepath.Ext(f.Name) == ".yaml" && filepath.Dir(f.Name) == "." {
				scene.patches = append(scene.patches, f.Name)
			}
		}
	}
	plan, err := scene.plan(t)
	if err == nil {
		err = startAndStop(t, plan)
	}
	report, gotSlugs := reported(t, err)
	got := strings.ReplaceAll(report, scene.dir, "$DIR")
	if !slices.Equal(gotSlugs, slugs) {
		t.Errorf("got slugs %q, want %q", gotSlugs, slugs)
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("the value of a variable is in the report")
	}
	if *update {
		archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
		archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want - got +:\n%s", d)
	}
}

// startAndStop returns what went wrong when the rows of a plan without a fault ran.
func startAndStop(t *testing.T, plan *compose.Plan) error {
	running, err := compose.Apply(t.Context(), plan, compose.RunOptions{})
	if err != nil {
		return err
	}
	return running.Stop()
}

// reported returns what a person reads of err, and the slugs of all that is in it.
func reported(t *testing.T, err error) (report string, slugs []string) {
	t.Helper()
	all := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		if _, row := err.(interface{ Report() string }); !row || errors.As(err, new(*compose.Faults)) {
			all = many.Unwrap()
		}
	}
	for _, err := range all {
		d, ok := errors.AsType[*diag.Diagnostic](err)
		if !ok {
			t.Fatalf("got %v, want diagnostics", err)
		}
		slugs = append(slugs, d.Slug)
	}
	return diag.ReportOf(err), slugs
}

// scene is a directory with patch files and the arguments that a user gave.
type scene struct {
	dir     string
	args    []string
	patches []string // without args: the files to give with --patch
}

func (s *scene) write(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) plan(t *testing.T) (*compose.Plan, error) {
	t.Helper()
	m := compose.Machine{
		Platform: "linux", Arch: "x64", Env: map[string]string{"SECRET": "hunter2"}, Dir: s.dir, PID: 7,
		ExecPath: "/usr/bin/dsh", Home: filepath.Join(s.dir, "home"),
	}
	in := compose.Inputs{Dir: s.dir, Patches: s.patches, Available: []module.Bundle{{Name: "base"}, {Name: "headless"}}}
	var o compose.FoldOptions
	if s.args != nil {
		in.Patches = nil
	}
	for _, arg := range s.args {
		name, value, _ := strings.Cut(arg, " ")
		switch name {
		case "--patch":
			in.Patches = append(in.Patches, value)
		case "--set":
			in.Sets = append(in.Sets, value)
		case "--home":
			in.Home = filepath.Join(s.dir, value)
		case "--profile":
			in.Profile = value
		case "--platform":
			m.Platform = value
		case "--allow-unknown-ids":
			o.AllowUnknownIDs = true
		default:
			t.Fatalf("unknown argument %q", arg)
		}
	}
	return compose.MakePlan(compose.Load(in), modules(t), m, o)
}

// TestEveryFaultHasAGoldenAndAPage finds the slugs in the code.
func TestEveryFaultHasAGoldenAndAPage(t *testing.T) {
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile("(?m)^## `?([a-z-]+)`?$").FindAllStringSubmatch(string(page), -1)
	for slug, example := range examples(string(page)) {
		if files, _ := filepath.Glob("testdata/faults/" + slug + ".*"); len(files) > 0 && !slices.ContainsFunc(files, func(file string) bool {
			return strings.Contains(asDocumented(t, file), example)
		}) {
			t.Errorf("docs/errors.md: no golden reports what ## %s shows:\n%s", slug, example)
		}
	}
	slugs := slugsIn(t, ".", "../internal/source")
	if len(slugs) < 20 {
		t.Fatalf("found only %q", slugs)
	}
	for _, slug := range slugs {
		if !slices.ContainsFunc(sections, func(m []string) bool { return m[1] == slug }) {
			t.Errorf("docs/errors.md has no section ## %s", slug)
		}
		if files, _ := filepath.Glob("testdata/faults/" + slug + ".*"); len(files) == 0 {
			t.Errorf("no golden testdata/faults/%s.txtar", slug)
		}
	}
}

// examples returns the first block of each section of the page.
func examples(page string) map[string]string {
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^## ([a-z-]+)$.*?^```\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks[m[1]] = m[2]
	}
	return blocks
}

// asDocumented returns a golden with the names that a user would see.
func asDocumented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"compose_test.Runtime", "subprocess.Runtime", "compose_test.Executor", "shell.Executor", "compose_test.Policies", "sandbox.Policies",
		"$DIR/home", "/home/you/.dsh", "$DIR", "/home/you",
		"100ms", "5s", // a module of the tests has less time
	).Replace(string(text))
}

var slugPattern = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// slugsIn returns the literal slugs in the Go files of directories: the field Slug of a literal or an assignment, and the
// argument of a call of a function named fault.
func slugsIn(t *testing.T, dirs ...string) []string {
	t.Helper()
	var slugs []string
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if s, _ := strconv.Unquote(lit.Value); slugPattern.MatchString(s) && !slices.Contains(slugs, s) {
			slugs = append(slugs, s)
		}
	}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Slug" {
						add(n.Value)
					}
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "Slug" && i < len(n.Rhs) && n.Tok == token.ASSIGN {
							add(n.Rhs[i])
						}
					}
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "fault" && filepath.Base(file) != "row.go" {
						for _, arg := range n.Args {
							add(arg)
						}
					}
				}
				return true
			})
		}
	}
	return slugs
}
