package compose

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

// Source is a patch that is in memory.
type Source struct {
	Name string // what a dump calls the layer
	File string // what a fault calls it
	Text []byte
}

// Inputs says which layers there are.
type Inputs struct {
	Bundles    []module.Bundle // of the profile, in order, unless Home/profiles/<Profile>/profile.yaml lists others
	Available  []module.Bundle // what a profile.yaml may list
	Deployment *Source         // nil: none
	Profile    string          // for Home/profiles/<Profile>/cordis.patch.yaml; empty: none
	Home       string          // $DSH_HOME; empty: no user files
	Patches    []string        // --patch files, absolute or relative to Dir; a fault names them as they are given here
	Dir        string
	Sets       []string // --set ID.PATH=VALUE
}

// Layer is one patch, parsed. What was wrong with it stays in it, and Fold reports it with everything else.
type Layer struct {
	Name string // what a dump calls it
	File string // what a fault calls it

	entries []*source.Node
	sets    []set
	faults  []*diag.Diagnostic
}

// set is a value for one path in one row's config.
type set struct {
	target []string // the id and the path; an id may have dots itself
	place  diag.Place
	value  *source.Node
}

// Load reads and parses the layers, in the order in which they apply. No file is looked for anywhere but where in says.
func Load(in Inputs) []Layer {
	bundles, layers := in.bundles()
	for _, b := range bundles {
		layers = append(layers, Parse(Source{Name: b.Name, File: cmp.Or(b.File, "bundle "+b.Name), Text: b.Patch}))
	}
	if in.Deployment != nil {
		layers = append(layers, Parse(*in.Deployment))
	}
	if in.Home != "" && in.Profile != "" {
		layers = append(layers, userLayer(filepath.Join(in.Home, "profiles", in.Profile))...)
	}
	if in.Home != "" {
		layers = append(layers, userLayer(in.Home)...)
	}
	for _, name := range in.Patches {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(in.Dir, path)
		}
		layers = append(layers, fileLayer(name, path))
	}
	if len(in.Sets) > 0 {
		layers = append(layers, setLayer(in.Sets))
	}
	return layers
}

// Parse reads one patch.
func Parse(s Source) Layer {
	l := Layer{Name: s.Name, File: s.File}
	n, err := source.Parse(s.File, s.Text)
	switch {
	case err != nil:
		l.faults = append(l.faults, err.(*diag.Diagnostic))
	case n.Kind == source.List:
		l.entries = n.Items
	case n.Kind == source.Fault:
		l.faults = n.Faults()
	case n.Kind != source.Null:
		l.faults = append(l.faults, &diag.Diagnostic{
			Place: n.Place, Slug: "not-a-list",
			Message: "a patch is a list of entries, and this is " + n.Kind.String(),
			Hint:    `start every entry with "- "`,
		})
	}
	return l
}

// userLayer reads the patch of a directory, in either spelling, if there is one.
func userLayer(dir string) []Layer {
	path, err := userFile(dir, "cordis.patch")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if d, ok := errors.AsType[*diag.Diagnostic](err); ok {
		return []Layer{{Name: d.Place.File, File: d.Place.File, faults: []*diag.Diagnostic{d}}}
	}
	return []Layer{fileLayer(path, path)}
}

// What a patch file may be, so that a device or a pipe without an end is a fault.
const (
	maxPatch    = 8 << 20
	patchWithin = 10 * time.Second // for who writes to a pipe
)

// readPatch reads a file or, as `--patch <(program)` gives it, a pipe. Opening a pipe does not wait for its writer.
func readPatch(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(patchWithin)) // files have none and need none
	text, err := io.ReadAll(io.LimitReader(f, maxPatch+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("it is a pipe whose writer is not done after %v", patchWithin)
	case err == nil && len(text) > maxPatch:
		err = fmt.Errorf("it is larger than %d MiB", maxPatch>>20)
	case err == nil && len(text) == 0 && isPipe(f):
		err = errors.New("it is a pipe, and nobody writes to it")
	}
	return text, err
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// fileLayer reads a file that must be there.
func fileLayer(name, path string) Layer {
	text, err := readPatch(path)
	if err == nil {
		return Parse(Source{Name: name, File: name, Text: text})
	}
	return Layer{Name: name, File: name, faults: []*diag.Diagnostic{unreadable(name, path, err)}}
}

// unreadable is the fault of a file that a user calls name.
func unreadable(name, path string, err error) *diag.Diagnostic {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	d := &diag.Diagnostic{Place: diag.Place{File: name}, Slug: "unreadable", Message: fmt.Sprintf("the file cannot be read: %v", err)}
	if name != path && !filepath.IsAbs(name) {
		d.Hint = "looked for at " + path
	}
	return d
}

// setFile is what stands for a file in the places of --set arguments.
const setFile = "--set"

// setLayer parses --set arguments.
func setLayer(args []string) Layer {
	l := Layer{Name: setFile, File: setFile}
	for _, arg := range args {
		s, d := parseSet(diag.Place{File: setFile + " " + arg}, arg)
		if d != nil {
			l.faults = append(l.faults, d)
			continue
		}
		l.sets = append(l.sets, s)
	}
	return l
}

// ParseSet returns a layer of one argument as --set takes it, which another flag stands for. Dumps and faults call it flag.
func ParseSet(flag, arg string) Layer {
	l := Layer{Name: flag, File: flag}
	if s, d := parseSet(diag.Place{File: flag}, arg); d != nil {
		l.faults = append(l.faults, d)
	} else {
		l.sets = append(l.sets, s)
	}
	return l
}

func parseSet(place diag.Place, arg string) (set, *diag.Diagnostic) {
	s := set{place: place}
	fault := func(message, hint string) (set, *diag.Diagnostic) {
		return s, &diag.Diagnostic{Place: s.place, Slug: "set", Message: message, Hint: hint}
	}
	target, text, ok := strings.Cut(arg, "=")
	s.target = strings.Split(target, ".")
	switch {
	case !ok || len(s.target) < 2 || s.target[0] == "":
		return fault("not of the form ID.PATH=VALUE", "as in --set bash-local.timeoutMs=60000")
	case slices.Contains(s.target, ""):
		return fault("the path has an empty part", "")
	case strings.TrimSpace(text) == "":
		return fault("there is no value", "write '' for empty text, or null")
	}
	value, err := source.ParseValue(s.place, text)
	if err != nil {
		d := err.(*diag.Diagnostic)
		return fault("the value "+strings.TrimPrefix(d.Message, "this ")+" value", d.Hint)
	}
	if faults := value.Faults(); len(faults) > 0 {
		return s, faults[0]
	}
	if value.Block {
		return fault("the value is not in one line as [a, b], {key: value} or a scalar", "quote it to make it text")
	}
	expression := false
	value.Walk(func(n *source.Node) bool { expression = expression || n.Kind == source.Expr; return true })
	if expression {
		return fault("an expression cannot be set", "write it into a file and give that with --patch")
	}
	s.value = value
	return s, nil
}
