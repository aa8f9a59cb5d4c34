package compose_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/compose"
	"dsh/module"
)

func names(layers []compose.Layer) []string {
	var out []string
	for _, l := range layers {
		out = append(out, l.Name)
	}
	return out
}

func TestLayersApplyInOrder(t *testing.T) {
	t.Parallel()
	s := scene{dir: t.TempDir()}
	s.write(t, "home/cordis.patch.yml", nil)
	s.write(t, "home/profiles/work/cordis.patch.yaml", nil)
	s.write(t, "one.yaml", nil)
	home := filepath.Join(s.dir, "home")
	layers := compose.Load(compose.Inputs{
		Bundles:    []module.Bundle{{Name: "base", File: "bundles/base/cordis.patch.yaml"}, {Name: "headless", File: "bundles/headless/cordis.patch.yaml"}},
		Deployment: &compose.Source{Name: "deployment", File: "cordis.patch.yaml"},
		Profile:    "work", Home: home, Dir: s.dir, Patches: []string{"one.yaml", filepath.Join(s.dir, "one.yaml")}, Sets: []string{"a.b=1"},
	})
	want := []string{
		"base", "headless", "deployment", filepath.Join(home, "profiles", "work", "cordis.patch.yaml"), filepath.Join(home, "cordis.patch.yml"),
		"one.yaml", filepath.Join(s.dir, "one.yaml"), "--set",
	}
	if d := cmp.Diff(want, names(layers)); d != "" {
		t.Error(d)
	}
}

func TestTheFaultOfABundleWithoutAFileNamesTheBundle(t *testing.T) {
	t.Parallel()
	l := compose.Load(compose.Inputs{Bundles: []module.Bundle{{Name: "mine", Patch: []byte("insert: none\n")}}})
	_, err := compose.Fold(l, compose.FoldOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "bundle mine:1:1: ") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsReadFromTheWorkingDirectory(t *testing.T) {
	s := scene{dir: t.TempDir()}
	for _, name := range []string{"cordis.patch.yaml", "cordis.patch.yml", ".env", "profiles/base/cordis.patch.yaml", ".dsh/cordis.patch.yaml", "profile.yaml"} {
		s.write(t, name, []byte("- insert: [{id: planted, name: x}]\n"))
	}
	t.Chdir(s.dir)
	layers := compose.Load(compose.Inputs{Profile: "base", Home: filepath.Join(s.dir, "home"), Dir: s.dir})
	layers = append(layers, compose.Load(compose.Inputs{Profile: "base", Dir: s.dir})...)
	if len(layers) != 0 {
		t.Errorf("got the layers %q", names(layers))
	}
}

func TestUserFilesMayBeAbsentAndPatchesMayNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if layers := compose.Load(compose.Inputs{Profile: "p", Home: filepath.Join(dir, "nowhere"), Dir: dir}); len(layers) != 0 {
		t.Errorf("got %q", names(layers))
	}
	for _, patch := range []string{"missing.yaml", "."} {
		_, err := compose.Fold(compose.Load(compose.Inputs{Patches: []string{patch}, Dir: dir}), compose.FoldOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), patch+": the file cannot be read: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", patch, err)
		}
	}
}

func TestAHomeThatCannotBeLookedIntoIsUnreadable(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(home, home); err != nil {
		t.Fatal(err)
	}
	_, err := compose.Fold(compose.Load(compose.Inputs{Home: home}), compose.FoldOptions{})
	want := filepath.Join(home, "cordis.patch.yaml") + ": the file cannot be read: too many levels of symbolic links"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnEndlessPatchIsAFault(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("/dev/zero is not there")
	}
	_, err := compose.Fold(compose.Load(compose.Inputs{Patches: []string{"/dev/zero"}}), compose.FoldOptions{})
	if err == nil || !strings.Contains(err.Error(), "it is larger than 8 MiB [unreadable]") {
		t.Errorf("got %v", err)
	}
}

func TestAPipeIsReadAndNotWaitedForForever(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v\n%s", err, out)
	}
	_, err := compose.Fold(compose.Load(compose.Inputs{Patches: []string{pipe}, Dir: dir}), compose.FoldOptions{})
	if err == nil || !strings.Contains(err.Error(), "it is a pipe, and nobody writes to it [unreadable]") {
		t.Errorf("a pipe that nobody opened: %v", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	go func() {
		defer write.Close()
		time.Sleep(50 * time.Millisecond)
		_, _ = write.WriteString("- insert: [{id: late, name: x}]\n")
	}()
	rows, err := compose.Fold(compose.Load(compose.Inputs{Patches: []string{fmt.Sprintf("/dev/fd/%d", read.Fd())}}), compose.FoldOptions{})
	if err != nil || len(rows.IDs()) != 1 {
		t.Errorf("a pipe that is written to late: %v, %v", rows.IDs(), err)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	base := layer("base", "- insert: [{id: r, name: x, config: {a: {b: 1, c: 2}, d: [1]}}, {id: s, name: x}, {id: e, name: x, config: !!js y}, {id: g, group: true, config: []}]\n")
	for _, c := range []struct{ arg, want string }{
		{"r.a.b=7", `{"id": "r","name": "x","config": {"a": {"b": 7,"c": 2},"d": [1]}}`},
		{"r.a={x: [true, 'no', no]}", `{"id": "r","name": "x","config": {"a": {"x": [true,"no","no"]},"d": [1]}}`},
		{"r.d=[]", `{"id": "r","name": "x","config": {"a": {"b": 1,"c": 2},"d": []}}`},
		{"r.a.b=a=b", `{"id": "r","name": "x","config": {"a": {"b": "a=b","c": 2},"d": [1]}}`},
		{"r.d=null", `{"id": "r","name": "x","config": {"a": {"b": 1,"c": 2},"d": null}}`},
		{"s.a.b=''", `{"id": "s","name": "x","config": {"a": {"b": ""}}}`},
		{"s.url=http://h:1/x?y=z", `{"id": "s","name": "x","config": {"url": "http://h:1/x?y=z"}}`},
		{"r.a.b.c=1", "a.b is an integer, which has no keys"},
		{"r.d.0=1", "d is a list, which has no keys"},
		{"e.a=1", "config is an expression, which has no keys"},
		{"g.a=1", "a group has no settings"},
		{"q.a=1", `no row has the id "q"`},
		{"r.a=!!js x", "an expression cannot be set"},
		{"r.a=[!!js x]", "an expression cannot be set"},
		{"r.a=!!str x", "the tag !!str is not known here"},
		{"r.a=b: c", "the value is not in one line"},
		{"r.a=[1", "the value is not YAML"},
		{"r.a=", "there is no value"},
		{"r=1", "not of the form"},
		{"r.a", "not of the form"},
		{".a=1", "not of the form"},
		{"r..a=1", "the path has an empty part"},
		{"r.=1", "the path has an empty part"},
	} {
		t.Run(c.arg, func(t *testing.T) {
			t.Parallel()
			layers := append([]compose.Layer{base}, compose.Load(compose.Inputs{Sets: []string{c.arg}})...)
			rows, err := compose.Fold(layers, compose.FoldOptions{})
			if err != nil {
				if !strings.HasPrefix(err.Error(), "--set "+c.arg+": ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			if got := strings.Join(lines(t, rows), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestAnIDMayHaveDots(t *testing.T) {
	t.Parallel()
	patch := layer("a", "- insert: [{id: r, name: x}, {id: r.s, name: y}]\n")
	set := func(arg string) compose.Layer { return compose.Load(compose.Inputs{Sets: []string{arg}})[0] }
	rows, err := compose.Fold([]compose.Layer{patch, set("r.s.a.b=1"), set("r.t=2")}, compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"id": "r","name": "x","config": {"t": 2}}`, `{"id": "r.s","name": "y","config": {"a": {"b": 1}}}`}
	if got := lines(t, rows); !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLaterSetsSeeEarlierOnes(t *testing.T) {
	t.Parallel()
	layers := append([]compose.Layer{layer("a", "- insert: [{id: r, name: x}]\n")}, compose.Load(compose.Inputs{Sets: []string{"r.a.b=1", "r.a.c=2", "r.a.b=3"}})...)
	rows, err := compose.Fold(layers, compose.FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(t, rows), []string{`{"id": "r","name": "x","config": {"a": {"b": 3,"c": 2}}}`}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBothPlacesOfADoubledIDAreNamed(t *testing.T) {
	t.Parallel()
	_, err := fold(t, compose.FoldOptions{}, "- insert: [{id: sandbox, name: a}]\n", "- insert: [{id: sandbox, name: b}]\n")
	var faults *compose.Faults
	if !errors.As(err, &faults) || len(faults.Diagnostics()) != 1 {
		t.Fatalf("got %v, want one fault", err)
	}
	if report := faults.Report(); !strings.Contains(report, "b.yaml:1:17") || !strings.Contains(report, "a.yaml:1:17") {
		t.Errorf("got\n%s", report)
	}
}
