package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/diag"
	"dsh/internal/source"
	"dsh/module"
)

// ValidProfileName reports whether name can be a profile's: it is the name of a directory.
func ValidProfileName(name string) bool {
	return name != "" && name != "." && name != ".." && name != "node_modules" && !strings.ContainsAny(name, `/\`)
}

// Profiles returns the names of the profiles that home defines, sorted: the directories in home/profiles with a
// profile.yaml.
func Profiles(home string) []string {
	var names []string
	for _, spelling := range spellings("profile") {
		files, err := filepath.Glob(filepath.Join(home, "profiles", "*", spelling))
		if err != nil {
			continue // a home whose name is no pattern
		}
		for _, f := range files {
			names = append(names, filepath.Base(filepath.Dir(f)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// spellings returns how a file of a user may be called.
func spellings(name string) [2]string { return [2]string{name + ".yaml", name + ".yml"} }

// userFile returns the path of a user's file, in either spelling. Without one it is an fs.ErrNotExist; both beside each
// other are a diagnostic.
func userFile(dir, name string) (string, error) {
	var found []string
	for _, spelling := range spellings(name) {
		path := filepath.Join(dir, spelling)
		switch _, err := os.Lstat(path); {
		case err == nil:
			found = append(found, path)
		case !errors.Is(err, fs.ErrNotExist):
			return path, nil // whoever reads it will say why that cannot be done
		}
	}
	switch len(found) {
	case 0:
		return "", fs.ErrNotExist
	case 1:
		return found[0], nil
	}
	return "", &diag.Diagnostic{
		Place: diag.Place{File: found[0]}, Slug: "two-spellings",
		Message: filepath.Base(found[1]) + " stands beside it, and only one of them can count", Hint: "remove or join one of the two",
	}
}

// bundles returns the bundles of the profile in force: those that its profile.yaml lists, if there is one. What is wrong
// with that file is in a layer of its own.
func (in Inputs) bundles() ([]module.Bundle, []Layer) {
	if in.Home == "" || in.Profile == "" {
		return in.Bundles, nil
	}
	path, err := userFile(filepath.Join(in.Home, "profiles", in.Profile), "profile")
	if errors.Is(err, fs.ErrNotExist) {
		return in.Bundles, nil
	}
	l := Layer{Name: path, File: path}
	if d, ok := errors.AsType[*diag.Diagnostic](err); ok {
		l.faults = append(l.faults, d)
		return nil, []Layer{l}
	}
	text, err := readPatch(path)
	if err != nil {
		l.faults = append(l.faults, unreadable(path, path, err))
		return nil, []Layer{l}
	}
	n, err := source.Parse(path, text)
	if d, ok := errors.AsType[*diag.Diagnostic](err); ok {
		l.faults = append(l.faults, d)
		return nil, []Layer{l}
	}
	bundles := in.choose(n, &l)
	return bundles, []Layer{l}
}

// choose reads `bundles: [NAME, ...]`.
func (in Inputs) choose(n *source.Node, l *Layer) []module.Bundle {
	fault := func(place diag.Place, message, hint string) {
		l.faults = append(l.faults, &diag.Diagnostic{Place: place, Slug: "profile", Message: message, Hint: hint})
	}
	if faults := n.Faults(); len(faults) > 0 {
		l.faults = append(l.faults, faults...)
		return nil
	}
	const form = "write bundles: [base]"
	if n.Kind != source.Map {
		fault(n.Place, "a profile is a map with the key bundles, and this is "+n.Kind.String(), form)
		return nil
	}
	for _, f := range n.Fields {
		if f.Key != "bundles" {
			fault(f.Place, fmt.Sprintf("unknown key %q in a profile", f.Key), form)
		}
	}
	list := n.Get("bundles")
	if list == nil || list.Kind != source.List {
		if len(l.faults) == 0 { // else what should have been the list has been named
			fault(n.Place, "a profile lists its bundles", form)
		}
		return nil
	}
	var names []string
	for _, b := range in.Available {
		names = append(names, b.Name)
	}
	var chosen []module.Bundle
	for _, item := range list.Items {
		i := slices.Index(names, item.Raw)
		switch {
		case i < 0:
			fault(item.Place, fmt.Sprintf("no bundle is called %q", item.Raw), "there are "+strings.Join(names, ", "))
		case slices.ContainsFunc(chosen, func(b module.Bundle) bool { return b.Name == item.Raw }):
			fault(item.Place, fmt.Sprintf("the bundle %q is listed twice", item.Raw), "")
		default:
			chosen = append(chosen, in.Available[i])
		}
	}
	return chosen
}
