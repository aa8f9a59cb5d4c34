package module

import (
	"fmt"
	"reflect"
	"slices"

	"dsh/module/key"
)

// Bundle is a patch together with the modules that its rows mount. A deployment is a list of bundles, in the order in
// which their patches apply; a profile selects among them by name.
type Bundle struct {
	Name         string
	File         string // what a fault calls the patch, such as bundles/base/cordis.patch.yaml; empty: bundle and the name
	Patch        []byte
	Modules      []Module
	Capabilities []key.Key // words for the capabilities of these modules
}

// Registry knows every module that is compiled in. It is immutable and may be shared.
type Registry struct {
	modules []Module
	byName  map[string]Module
	words   map[reflect.Type]key.Key
}

// NewRegistry collects the modules of bundles. Two modules with a name or an alias in common are an error.
func NewRegistry(bundles ...Bundle) (*Registry, error) {
	r := &Registry{byName: map[string]Module{}, words: map[reflect.Type]key.Key{}}
	for _, b := range bundles {
		for _, k := range b.Capabilities {
			r.words[k.Type()] = k
		}
		for _, m := range b.Modules {
			for _, name := range append([]string{m.name}, m.aliases...) {
				if other, taken := r.byName[name]; taken {
					return nil, fmt.Errorf("bundle %q: modules %q and %q are both called %q", b.Name, other.name, m.name, name)
				}
				r.byName[name] = m
			}
			r.modules = append(r.modules, m)
		}
	}
	return r, nil
}

// Lookup returns the module with this name or alias.
func (r *Registry) Lookup(name string) (Module, bool) {
	m, ok := r.byName[name]
	return m, ok
}

// Modules returns every module, in bundle order.
func (r *Registry) Modules() []Module { return slices.Clone(r.modules) }

// Word returns how people call the capability t: `shell (shell.Executor)`, or the type alone if no bundle names it.
func (r *Registry) Word(t reflect.Type) string {
	if k, ok := r.words[t]; ok {
		return k.String()
	}
	return t.String()
}
