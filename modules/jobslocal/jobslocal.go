package jobslocal

import (
	"log/slog"
	"sync"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/jobs"
)

// Params is what the registry is made from.
type Params struct {
	fx.In
	Config Config
	Log    *slog.Logger
}

// Result is what the row provides.
type Result struct {
	fx.Out
	Registry jobs.Registry
	Runner   module.Runner
}

// Module returns the module jobs-local.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "jobs-local",
		Aliases:     []string{"@deepseek-ai/dsh-jobs-local", "@deepseek-ai/dsh-jobs"},
		Summary:     "holds background jobs: admits, reports and cancels them",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns a registry without jobs.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	r := &registry{
		limit: p.Config.MaxConcurrentJobsPerOwner, log: p.Log,
		counters: map[string]int{}, byID: map[string]*job{}, owners: map[string]*owner{},
	}
	return Result{Registry: r, Runner: module.Runner{Stop: r.stop}}, nil
}

// registry is a jobs.Registry. What a job's work does is never called with the lock held.
type registry struct {
	limit int
	log   *slog.Logger

	mu          sync.Mutex
	stopped     bool
	controllers int
	counters    map[string]int  // the last number given to a job of a kind
	jobs        []*job          // those with an id, in order of their start
	byID        map[string]*job // the same
	owners      map[string]*owner
}

var _ jobs.Registry = (*registry)(nil)

// owner is a session, as far as there is something to know of it.
type owner struct {
	live     map[*job]bool // they take a place: being prepared, running, or on their way out without an id
	ending   int           // calls of EndSession at work
	notices  []*job
	watchers map[*chan struct{}]bool
}

// owner returns the session's entry. The caller holds the lock.
func (r *registry) owner(session string) *owner {
	o := r.owners[session]
	if o == nil {
		o = &owner{live: map[*job]bool{}, watchers: map[*chan struct{}]bool{}}
		r.owners[session] = o
	}
	return o
}

// tidy drops an entry that says nothing. The caller holds the lock.
func (r *registry) tidy(session string) {
	if o := r.owners[session]; o != nil && o.ending == 0 && len(o.live)+len(o.notices)+len(o.watchers) == 0 {
		delete(r.owners, session)
	}
}

// Control implements jobs.Registry.
func (r *registry) Control() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllers++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.controllers--
	})
}
