package shellenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.uber.org/fx"

	"dsh/internal/dshhome"
	"dsh/module"
	"dsh/modules/shell"
)

// Params is what New takes.
type Params struct {
	fx.In
	Config Config
}

// Result is what New gives.
type Result struct {
	fx.Out
	Facts shell.Facts
}

// Module returns the module shell-env.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "shell-env",
		Aliases:     []string{"@deepseek-ai/dsh-shell-env"},
		Summary:     "keeps the DSH_* variables that commands get",
		Constructor: New,
	})
}

// New returns a registry with the variables of this package alone.
func New(Params) (Result, error) {
	home, err := dshhome.Dir()
	if err != nil {
		return Result{}, err
	}
	return Result{Facts: &facts{
		home:         home,
		contributors: map[string]*shell.Contributor{},
		owners:       map[string]string{},
	}}, nil
}

type facts struct {
	home string

	mu           sync.Mutex
	contributors map[string]*shell.Contributor // by name
	owners       map[string]string             // key to the name of its contributor
}

var _ shell.Facts = (*facts)(nil)

var validKey = regexp.MustCompile(`^DSH_[A-Z][A-Z0-9_]*$`)

// reserved are the keys of this package, and the one by which a runtime marks its processes.
var reserved = []string{"DSH_HOME", "DSH_SHELL", "DSH_SESSION_ID", "DSH_RANGE"}

func (f *facts) Register(c shell.Contributor) (undo func(), err error) {
	c.Variables = slices.Clone(c.Variables)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(c); err != nil {
		return nil, err
	}
	added := &c
	f.contributors[c.Name] = added
	for _, v := range c.Variables {
		f.owners[v.Key] = c.Name
	}
	return func() { f.remove(added) }, nil
}

// check returns what is wrong with c, in the words that upstream's contributors know.
func (f *facts) check(c shell.Contributor) error {
	if strings.TrimSpace(c.Name) == "" {
		return errors.New("bash env contributor name must be non-empty")
	}
	who := `bash env contributor "` + c.Name + `"`
	if f.contributors[c.Name] != nil {
		return fmt.Errorf("%s is already registered", who)
	}
	seen := map[string]bool{}
	for _, v := range c.Variables {
		switch {
		case !validKey.MatchString(v.Key):
			return fmt.Errorf(`%s declared invalid key "%s"`, who, v.Key)
		case slices.Contains(reserved, v.Key):
			return fmt.Errorf(`%s cannot own reserved key "%s"`, who, v.Key)
		case strings.TrimSpace(v.Description) == "":
			return fmt.Errorf(`%s must describe "%s"`, who, v.Key)
		}
		owner, owned := f.owners[v.Key]
		if seen[v.Key] {
			owner, owned = c.Name, true
		}
		if owned {
			return fmt.Errorf(`bash env key "%s" is already owned by contributor "%s"; contributor "%s" cannot also own it`,
				v.Key, owner, c.Name)
		}
		seen[v.Key] = true
	}
	if c.Resolve == nil {
		return fmt.Errorf("%s has no Resolve", who)
	}
	return nil
}

// remove takes back one registration. A later one under the same name is another.
func (f *facts) remove(c *shell.Contributor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.contributors[c.Name] != c {
		return
	}
	delete(f.contributors, c.Name)
	for _, v := range c.Variables {
		delete(f.owners, v.Key)
	}
}

func (f *facts) Collect(ctx context.Context, e shell.Execution) (map[string]string, error) {
	all := map[string]string{"DSH_HOME": f.home, "DSH_SHELL": "1"}
	if e.SessionID != "" {
		all["DSH_SESSION_ID"] = e.SessionID
	}
	for _, c := range f.sorted() {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		values, err := c.Resolve(ctx, e)
		if err != nil {
			return nil, fmt.Errorf(`bash env contributor "%s": %w`, c.Name, err)
		}
		// In order, so that the same mistake is the same message each time.
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if !slices.ContainsFunc(c.Variables, func(v shell.Variable) bool { return v.Key == key }) {
				return nil, fmt.Errorf(`bash env contributor "%s" returned undeclared key "%s"`, c.Name, key)
			}
			all[key] = values[key]
		}
	}
	return all, nil
}

func (f *facts) Declared() []shell.Variable {
	var all []shell.Variable
	for _, c := range f.sorted() {
		all = append(all, c.Variables...)
	}
	slices.SortFunc(all, func(a, b shell.Variable) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// sorted returns the contributors by name, for use without the lock: their functions are not called under it.
func (f *facts) sorted() []*shell.Contributor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.contributors), func(a, b *shell.Contributor) int {
		return cmp.Compare(a.Name, b.Name)
	})
}
