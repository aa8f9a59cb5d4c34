package subprocesslocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dsh/modules/subprocess"
)

// newRanges returns ranges of the kind that start finds to be the best at hand.
func newRanges(config Config, id string, log *slog.Logger) choosing {
	return &choice{config: config, id: id, log: log}
}

// choice is ranges of the kind that was chosen at start.
type choice struct {
	config Config
	id     string
	log    *slog.Logger

	mu       sync.Mutex
	chosen   ranges // nil before start
	stopped  bool   // for good
	verdicts []subprocess.RangeVerdict
}

var _ choosing = (*choice)(nil)

// candidate is a kind of range that may work here.
type candidate struct {
	kind subprocess.RangeKind
	// try returns ranges that have started, and why they are the ones, or why there are none.
	try func() (r ranges, reason string, err error)
}

// start tries the kinds, the best first; a kind that the configuration names, that alone.
func (c *choice) start() error {
	candidates := c.candidates()
	if pinned := subprocess.RangeKind(c.config.Range); c.config.Range != rangeAuto {
		candidates = slices.DeleteFunc(candidates, func(x candidate) bool { return x.kind != pinned })
	}
	var verdicts []subprocess.RangeVerdict
	var chosen ranges
	for _, x := range candidates {
		if chosen != nil {
			verdicts = append(verdicts, subprocess.RangeVerdict{Kind: x.kind, Reason: "a better kind is in force"})
			continue
		}
		r, reason, err := x.try()
		if err != nil {
			c.log.Debug("a kind of range is not available", "kind", x.kind, "error", err)
			verdicts = append(verdicts, subprocess.RangeVerdict{Kind: x.kind, Reason: err.Error()})
			continue
		}
		chosen = r
		verdicts = append(verdicts, subprocess.RangeVerdict{Kind: x.kind, Chosen: true, Reason: reason})
	}
	if chosen == nil {
		last := verdicts[len(verdicts)-1]
		return fmt.Errorf("range %q is not available: %s", last.Kind, last.Reason)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen, c.verdicts = chosen, verdicts
	return nil
}

// candidates returns the kinds that are there, the best first.
func (c *choice) candidates() []candidate {
	at, err := ownPlace()
	return []candidate{
		{subprocess.RangeScope, func() (ranges, string, error) {
			if err != nil {
				return nil, "", err
			}
			return c.scope(at)
		}},
		{subprocess.RangeCgroup, func() (ranges, string, error) {
			if err != nil {
				return nil, "", err
			}
			return c.cgroup(at)
		}},
		{subprocess.RangeGroup, func() (ranges, string, error) {
			g := newGroup(c.id, "", c.log)
			return g, "a process group for each command, and what leaves it is found among the host's orphans", g.start()
		}},
	}
}

// scope has this process moved into a scope, unless it would leave one that already owns it.
func (c *choice) scope(at place) (ranges, string, error) {
	unit, delegated := at.unit()
	switch {
	case !c.config.EnterScope:
		return nil, "", errors.New("enterScope is off, and commands can be started in a scope only from within it")
	case at.inRange():
		return nil, "", errors.New("this host is in the range of another, which it must not leave")
	case strings.HasSuffix(unit, ".service") && delegated:
		return nil, "", fmt.Errorf("this host is the service %s, whose cgroup is its own already", unit)
	case strings.HasSuffix(unit, ".service"):
		return nil, "", fmt.Errorf("this host is the service %s, which it must not leave", unit)
	}
	in, manager, err := theScope.enter(c.id, c.log)
	if err != nil {
		return nil, "", err
	}
	if filepath.Base(in.path) == treePrefix+c.id+".scope" {
		g, err := c.startIn(subprocess.RangeScope, tree{in.dir, in.path})
		return g, fmt.Sprintf("the %s made %s", manager, filepath.Base(in.path)), err
	}
	// An earlier runtime of this process asked for the scope.
	g, err := c.startIn(subprocess.RangeScope, c.below(in))
	return g, fmt.Sprintf("this process is in %s already", filepath.Base(in.path)), err
}

func (c *choice) cgroup(at place) (ranges, string, error) {
	g, err := c.startIn(subprocess.RangeCgroup, c.below(at))
	if at.inRange() {
		return g, "this host is itself in the range of another, and its commands stay there", err
	}
	return g, "cgroups can be made in " + at.dir, err
}

// below returns a tree in a cgroup.
func (c *choice) below(at place) tree {
	name := treePrefix + c.id
	return tree{filepath.Join(at.dir, name), strings.TrimSuffix(at.path, "/") + "/" + name}
}

func (c *choice) startIn(kind subprocess.RangeKind, t tree) (ranges, error) {
	g := &cgroups{group: newGroup(c.id, t.root, c.log), name: kind, tree: t, limits: controllers{tree: t}, spare: make(chan *cgroupRange, 1)}
	return g, g.start()
}

// ranges returns what was chosen.
func (c *choice) ranges() (ranges, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chosen == nil {
		return nil, errNotStarted
	}
	return c.chosen, nil
}

func (c *choice) kind() subprocess.RangeKind {
	r, err := c.ranges()
	if err != nil {
		return subprocess.RangeNone
	}
	return r.kind()
}

func (c *choice) report() []subprocess.RangeVerdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.verdicts)
}

func (c *choice) allow(l subprocess.Limits) error {
	r, err := c.ranges()
	if err != nil {
		return err
	}
	return r.allow(l)
}

func (c *choice) make(l subprocess.Limits) (managedRange, error) {
	r, err := c.ranges()
	if err != nil {
		return nil, err
	}
	return r.make(l)
}

func (c *choice) stop(ctx context.Context) error {
	c.mu.Lock()
	r, stopped := c.chosen, c.stopped
	c.mu.Unlock()
	if r == nil || stopped {
		return nil
	}
	err := r.stop(ctx)
	if err == nil {
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
	}
	return err
}

func (c *choice) kill() {
	if r, err := c.ranges(); err == nil {
		r.kill()
	}
}
