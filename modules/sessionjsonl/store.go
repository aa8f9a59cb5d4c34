package sessionjsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dsh/modules/session"
)

const (
	logName  = "session.jsonl"
	lockName = "lock"
)

type store struct {
	root string
	log  *slog.Logger

	mu      sync.Mutex
	live    map[string]*file
	stopped bool
}

var _ session.Store = (*store)(nil)

func (s *store) dir(id string) string  { return filepath.Join(s.root, id) }
func (s *store) path(id string) string { return filepath.Join(s.root, id, logName) }

// Create implements session.Store.
func (s *store) Create(ctx context.Context, n session.New) (session.Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	header, err := n.Header(time.Now())
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(s.dir(header.ID)); err == nil {
		return nil, fmt.Errorf("session %q: %w", header.ID, session.ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f := &file{store: s, header: header}
	return f, s.enter(f, session.ErrExists)
}

// Open implements session.Store.
func (s *store) Open(ctx context.Context, id string) (session.Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	path, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	f := &file{store: s}
	if f.lock, err = lock(filepath.Join(s.dir(id), lockName)); err != nil {
		return nil, fmt.Errorf("session %q: %w", id, err)
	}
	if err := f.resume(id, path); err != nil {
		return nil, errors.Join(err, f.release())
	}
	if err := s.enter(f, session.ErrLocked); err != nil {
		return nil, errors.Join(err, f.release())
	}
	if r := f.recovery; r != (session.Recovery{}) {
		s.log.Warn("repaired a session log", "session", id, "cutBytes", r.CutBytes, "eventsAdded", r.Closed)
	}
	return f, nil
}

// stored returns the path of a stored session's log.
func (s *store) stored(id string) (string, error) {
	if session.CheckID(id) == nil {
		_, err := os.Lstat(s.path(id))
		if err == nil {
			return s.path(id), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("session %q: %w", id, session.ErrNotFound)
}

// enter makes f live, or returns taken if a session of that name is.
func (s *store) enter(f *file, taken error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return fmt.Errorf("session %q: %w", f.header.ID, session.ErrClosed)
	case s.live[f.header.ID] != nil:
		return fmt.Errorf("session %q: %w", f.header.ID, taken)
	}
	s.live[f.header.ID] = f
	return nil
}

func (s *store) leave(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[f.header.ID] == f {
		delete(s.live, f.header.ID)
	}
}

// Live implements session.Store.
func (s *store) Live(id string) (session.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.live[id]; f != nil {
		return f, true
	}
	return nil, false
}

// close closes every open session.
func (s *store) close() error {
	s.mu.Lock()
	s.stopped = true
	var open []*file
	for _, f := range s.live {
		open = append(open, f)
	}
	s.mu.Unlock()
	var errs []error
	for _, f := range open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Read implements session.Store.
func (s *store) Read(ctx context.Context, id string) (session.Log, error) {
	if ctx.Err() != nil {
		return session.Log{}, context.Cause(ctx)
	}
	path, err := s.stored(id)
	if err != nil {
		return session.Log{}, err
	}
	r, err := os.Open(path)
	if err != nil {
		return session.Log{}, err
	}
	defer r.Close()
	got, err := read(r, id, path)
	return session.Log{Header: got.header, Events: got.events, Torn: got.total - got.good, Location: path}, err
}

// List implements session.Store.
func (s *store) List(ctx context.Context) ([]session.Summary, error) {
	entries, err := os.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []session.Summary
	for _, entry := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !entry.IsDir() {
			continue
		}
		path, err := s.stored(entry.Name())
		if errors.Is(err, session.ErrNotFound) {
			continue // not a session, or one that is being made
		}
		summary := session.Summary{ID: entry.Name(), Location: path, Err: err}
		if err == nil {
			summarize(&summary)
		}
		all = append(all, summary)
	}
	slices.SortStableFunc(all, func(a, b session.Summary) int { return b.ChangedAt.Compare(a.ChangedAt) })
	return all, nil
}

// summarize reads the beginning of the log at sum.Location.
func summarize(sum *session.Summary) {
	r, err := os.Open(sum.Location)
	if err != nil {
		sum.Err = err
		return
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		sum.Err = err
		return
	}
	sum.ChangedAt = info.ModTime()
	header, task, err := begin(r, sum.ID, sum.Location)
	sum.CWD, sum.CreatedAt, sum.Task, sum.Err = header.CWD, header.CreatedAt, task, err
}
