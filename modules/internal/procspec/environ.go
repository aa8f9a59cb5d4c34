package procspec

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"dsh/modules/subprocess"
)

// defaultPath is what commands get when the host has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// secretWords mark names whose values look like secrets.
var secretWords = []string{"KEY", "PASSWORD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL"}

// Environment makes the environments of commands. Its methods may be called concurrently.
type Environment struct {
	keep []string

	mu       sync.Mutex
	withheld map[string]int // how many callers withhold a name
}

// NewEnvironment returns an Environment that passes the names in keep on although they look like secrets.
func NewEnvironment(keep ...string) *Environment {
	e := &Environment{withheld: map[string]int{}}
	for _, name := range keep {
		e.keep = append(e.keep, fold(name))
	}
	return e
}

// Withhold keeps names out of later environments until undo is called.
func (e *Environment) Withhold(names ...string) (undo func()) {
	folded := make([]string, len(names))
	for i, name := range names {
		folded[i] = fold(name)
	}
	e.count(folded, 1)
	return sync.OnceFunc(func() { e.count(folded, -1) })
}

func (e *Environment) count(names []string, by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if e.withheld[name] += by; e.withheld[name] == 0 {
			delete(e.withheld, name)
		}
	}
}

// For returns the environment of a command with these edits. It is never nil, which would be read as the host's own.
func (e *Environment) For(edits subprocess.Env) []string {
	inherited := e.inherited()
	result := make([]string, 0, len(inherited)+len(edits.Set))
	for _, entry := range inherited {
		name, _, _ := strings.Cut(entry, "=")
		if !edited(name, edits) {
			result = append(result, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edits.Set)) {
		result = append(result, name+"="+edits.Set[name])
	}
	return result
}

// path returns the PATH that commands inherit.
func (e *Environment) path() string {
	path := ""
	for _, entry := range e.inherited() {
		if name, value, _ := strings.Cut(entry, "="); fold(name) == "PATH" {
			path = value
		}
	}
	return path
}

// inherited returns what of the host's environment commands may see.
func (e *Environment) inherited() []string {
	e.mu.Lock()
	withheld := maps.Clone(e.withheld)
	e.mu.Unlock()
	havePath := false
	entries := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, ok := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		switch {
		case !ok || name == "" || withheld[fold(name)] > 0 || strings.HasPrefix(upper, "DSH_"):
			return true
		case fold(name) == "PATH":
			havePath = true
		}
		return secretive(upper) && !slices.Contains(e.keep, fold(name))
	})
	if !havePath && withheld["PATH"] == 0 {
		entries = append(entries, "PATH="+defaultPath)
	}
	return entries
}

func secretive(upper string) bool {
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) })
}

func edited(name string, edits subprocess.Env) bool {
	name = fold(name)
	for _, unset := range edits.Unset {
		unset = fold(unset)
		if prefix, ok := strings.CutSuffix(unset, "*"); ok && strings.HasPrefix(name, prefix) || name == unset {
			return true
		}
	}
	if runtime.GOOS != "windows" {
		_, set := edits.Set[name]
		return set
	}
	for set := range edits.Set {
		if fold(set) == name {
			return true
		}
	}
	return false
}

// fold returns name as the platform compares names.
func fold(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
