package sessiontest

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"dsh/modules/llm"
	"dsh/modules/sandbox"
	"dsh/modules/session"
)

// place keeps logs in memory for the stores of several hosts, which keep every promise but one.
type place struct {
	broken defect

	mu    sync.Mutex
	logs  map[string]*memory
	clock int64
}

type memory struct {
	header  session.Header
	events  []session.Event
	locked  bool
	changed int64
}

// defect is a promise that a fake breaks.
type defect string

const (
	storesEmpty     defect = "stores sessions without events"
	buffers         defect = "stores events at the end of a turn"
	takesAll        defect = "takes events that cannot follow"
	storesRefused   defect = "stores the events that it refuses"
	aliases         defect = "keeps the caller's data"
	growsHandedOut  defect = "changes what it handed out"
	unlocked        defect = "lets two hosts in"
	keepsLock       defect = "keeps a closed session locked"
	forgetsLive     defect = "does not know its open sessions"
	keepsLive       defect = "keeps closed sessions live"
	writesClosed    defect = "writes to closed sessions"
	overwrites      defect = "creates a session over another"
	takesAnyID      defect = "takes any id"
	takesAnyCWD     defect = "takes any directory"
	opensUnrepaired defect = "leaves an interrupted turn open"
	repairsNow      defect = "repairs with the present time"
	repairsHidden   defect = "does not tell about repairs"
	repairsUnstored defect = "does not store repairs"
	forgetsMode     defect = "forgets the sandbox mode"
	listsUnordered  defect = "lists the oldest first"
	listsNoTask     defect = "lists no tasks"
	ignoresCancel   defect = "ignores a context that has ended"
	skipsSeq        defect = "begins with seq 1"
	ignoresSummary  defect = "ignores compactions"
	racy            defect = "loses concurrent appends"
)

type fakeStore struct {
	*place
	live map[string]*fakeSession
}

func (p *place) open() session.Store { return &fakeStore{place: p, live: map[string]*fakeSession{}} }

func (s *fakeStore) Create(ctx context.Context, n session.New) (session.Session, error) {
	if ctx.Err() != nil && s.broken != ignoresCancel {
		return nil, context.Cause(ctx)
	}
	if s.broken == takesAnyCWD {
		n.CWD = os.TempDir()
	}
	if s.broken == takesAnyID && session.CheckID(n.ID) != nil {
		n.ID = ""
	}
	h, err := n.Header(time.Now())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[h.ID] != nil && s.broken != overwrites {
		return nil, session.ErrExists
	}
	f := &fakeSession{store: s, header: h}
	if s.broken == storesEmpty {
		f.store.logs[h.ID] = &memory{header: h, locked: true}
	}
	s.live[h.ID] = f
	return f, nil
}

func (s *fakeStore) Open(ctx context.Context, id string) (session.Session, error) {
	if ctx.Err() != nil && s.broken != ignoresCancel {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.logs[id]
	if m == nil {
		return nil, session.ErrNotFound
	}
	if m.locked && s.broken != unlocked {
		return nil, session.ErrLocked
	}
	m.locked = true
	f := &fakeSession{store: s, header: m.header, events: slices.Clone(m.events)}
	for _, e := range f.events {
		if err := f.state.Apply(e); err != nil && s.broken != takesAll && s.broken != skipsSeq {
			return nil, &session.DamageError{ID: id, Reason: err.Error()}
		}
	}
	if s.broken != opensUnrepaired {
		f.repair()
	}
	s.live[id] = f
	return f, nil
}

func (f *fakeSession) repair() {
	last := f.events[len(f.events)-1].Time
	if f.store.broken == repairsNow {
		last = last.Add(time.Second)
	}
	for _, d := range f.state.Repair() {
		e, _ := session.NewEvent(f.state.Next(), last, d)
		_ = f.state.Apply(e)
		f.events = append(f.events, e)
		if f.store.broken != repairsUnstored {
			f.store.logs[f.header.ID].events = append(f.store.logs[f.header.ID].events, e)
		}
		if f.store.broken != repairsHidden {
			f.recovery.Closed++
		}
	}
}

func (s *fakeStore) Live(id string) (session.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.live[id]
	return f, f != nil && s.broken != forgetsLive
}

func (s *fakeStore) Read(_ context.Context, id string) (session.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.logs[id]
	if m == nil {
		return session.Log{}, session.ErrNotFound
	}
	return session.Log{Header: m.header, Events: slices.Clone(m.events)}, nil
}

func (s *fakeStore) List(context.Context) ([]session.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []session.Summary
	for id, m := range s.logs {
		sum := session.Summary{ID: id, CWD: m.header.CWD, CreatedAt: m.header.CreatedAt, ChangedAt: time.Unix(m.changed, 0)}
		for _, e := range m.events {
			if u, is := e.Data.(*session.UserMessage); is && s.broken != listsNoTask {
				sum.Task = u.Message.Text()
				break
			}
		}
		all = append(all, sum)
	}
	slices.SortFunc(all, func(a, b session.Summary) int {
		if s.broken == listsUnordered {
			a, b = b, a
		}
		return b.ChangedAt.Compare(a.ChangedAt)
	})
	return all, nil
}

type fakeSession struct {
	store     *fakeStore
	header    session.Header
	recovery  session.Recovery
	state     session.State
	events    []session.Event
	pending   []session.Event
	handedOut []session.Node // what growsHandedOut changes
	closed    bool
}

func (f *fakeSession) Append(d session.Data) (session.Event, error) {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.closed && s.broken != writesClosed {
		return session.Event{}, session.ErrClosed
	}
	next := int64(len(f.events))
	if s.broken == skipsSeq {
		next++
	}
	e, err := session.NewEvent(next, time.Now(), d)
	if err == nil {
		if check := f.state.Check(e.Data); check != nil && s.broken != takesAll {
			err = check
		}
	}
	if err != nil {
		if s.broken == storesRefused && len(f.events) > 0 {
			s.logs[f.header.ID].events = append(s.logs[f.header.ID].events, f.events[0])
		}
		return session.Event{}, err
	}
	if s.broken == aliases {
		e.Data = d
	}
	if s.broken == racy { // as if nothing ordered the appends
		s.mu.Unlock()
		time.Sleep(time.Microsecond)
		s.mu.Lock()
	}
	if next == 0 && s.logs[f.header.ID] != nil && s.broken != overwrites && s.broken != storesEmpty && s.broken != racy {
		return session.Event{}, session.ErrExists
	}
	if _, summary := d.(*session.CompactionSummary); !summary || s.broken != ignoresSummary {
		if applied := e; f.state.Check(e.Data) == nil {
			applied.Seq = f.state.Next()
			_ = f.state.Apply(applied)
		}
	}
	copy(f.handedOut, f.state.Surface())
	f.events = append(f.events, e)
	f.pending = append(f.pending, e)
	m := s.logs[f.header.ID]
	if m == nil {
		m = &memory{header: f.header, locked: true}
		s.logs[f.header.ID] = m
	}
	s.clock++
	m.changed = s.clock
	if _, ends := d.(*session.TurnEnd); ends || s.broken != buffers {
		m.events = append(m.events, f.pending...)
		f.pending = nil
	}
	return e, nil
}

func (f *fakeSession) Sync() error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.closed {
		return session.ErrClosed
	}
	return nil
}

func (f *fakeSession) Close() error {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if m := s.logs[f.header.ID]; m != nil && s.broken != keepsLock {
		m.locked = false
	}
	if s.broken != keepsLive {
		delete(s.live, f.header.ID)
	}
	return nil
}

func (f *fakeSession) Header() session.Header     { return f.header }
func (f *fakeSession) Recovery() session.Recovery { return f.recovery }

func (f *fakeSession) Events() []session.Event {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.events[:len(f.events):len(f.events)]
}

func (f *fakeSession) Messages() []llm.Message {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.state.Messages()
}

func (f *fakeSession) Surface() []session.Node {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.store.broken == growsHandedOut {
		f.handedOut = f.state.Surface()
		return f.handedOut
	}
	return f.state.Surface()
}

func (f *fakeSession) Position() session.Position {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return f.state.Position()
}

func (f *fakeSession) SandboxMode() (sandbox.Mode, bool) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.store.broken == forgetsMode {
		return "", false
	}
	return f.state.SandboxMode()
}
