package sessionjsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"dsh/modules/llm"
	"dsh/modules/sandbox"
	"dsh/modules/session"
)

// file is an open session.
type file struct {
	store    *store
	header   session.Header
	recovery session.Recovery

	// writing orders appends and is held while they write; it guards what they write to.
	writing sync.Mutex
	log     *os.File // nil until the first event
	lock    *os.File
	size    int64
	named   bool  // the names of the files survive the machine's end
	broken  error // the log could not be left as it was
	closed  bool

	mu     sync.Mutex
	state  session.State
	events []session.Event // never written to below its length: slices of it are handed out
}

var _ session.Session = (*file)(nil)

// resume reads the log at path, whose lock is held, and repairs it.
func (f *file) resume(id, path string) error {
	var err error
	if f.log, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0); err != nil {
		return err
	}
	got, err := read(f.log, id, path)
	if err != nil {
		return err
	}
	f.header, f.size = got.header, got.good
	for i, e := range got.events {
		if err := f.state.Apply(e); err != nil {
			return &session.DamageError{ID: id, File: path, Line: i + 2, Reason: err.Error()}
		}
	}
	f.events = got.events
	if f.recovery.CutBytes = got.total - got.good; f.recovery.CutBytes > 0 {
		if err := f.log.Truncate(got.good); err != nil {
			return err
		}
	}
	last := got.header.CreatedAt
	if n := len(got.events); n > 0 {
		last = got.events[n-1].Time
	}
	for _, d := range f.state.Repair() {
		if _, err := f.append(last, d); err != nil {
			return err
		}
		f.recovery.Closed++
	}
	if f.recovery.CutBytes > 0 {
		return f.sync()
	}
	return nil
}

// Append implements session.Session.
func (f *file) Append(d session.Data) (session.Event, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.append(time.Now(), d)
}

func (f *file) append(now time.Time, d session.Data) (session.Event, error) {
	if f.closed {
		return session.Event{}, fmt.Errorf("session %q: %w", f.header.ID, session.ErrClosed)
	}
	if f.broken != nil {
		return session.Event{}, f.broken
	}
	e, err := session.NewEvent(f.state.Next(), now, d)
	if err == nil {
		err = f.state.Check(e.Data) // only appends change the state, so it needs no lock to be read here
	}
	if err != nil {
		return session.Event{}, err
	}
	if err := f.write(e); err != nil {
		return session.Event{}, fmt.Errorf("session %q: %w", f.header.ID, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.state.Apply(e); err != nil {
		return session.Event{}, err
	}
	f.events = append(f.events, e)
	return e, nil
}

// write adds e to the file, after a header if it is the first, or leaves the file as it was.
func (f *file) write(e session.Event) error {
	var lines bytes.Buffer
	if f.log == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	if f.size == 0 {
		if err := session.WriteLine(&lines, f.header); err != nil {
			return err
		}
	}
	if err := session.WriteLine(&lines, e); err != nil {
		return err
	}
	n, err := f.log.Write(lines.Bytes())
	if err == nil {
		if _, ends := e.Data.(*session.TurnEnd); ends {
			err = f.sync()
		}
	}
	if err == nil {
		f.size += int64(n)
		return nil
	}
	if back := f.log.Truncate(f.size); back != nil {
		f.broken = fmt.Errorf("the log of session %q is damaged: %w", f.header.ID, errors.Join(err, back))
		return f.broken
	}
	return err
}

// create makes the session's files.
func (f *file) create() error {
	id := f.header.ID
	if err := os.MkdirAll(f.store.root, 0o700); err != nil {
		return err
	}
	dir := f.store.dir(id)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return session.ErrExists
	} else if err != nil {
		return err
	}
	var err error
	if f.lock, err = lock(filepath.Join(dir, lockName)); err == nil {
		f.log, err = os.OpenFile(f.store.path(id), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		err = errors.Join(err, f.release())
		os.Remove(filepath.Join(dir, lockName)) // so that the next append can try again
		os.Remove(dir)
	}
	return err
}

// Sync implements session.Session.
func (f *file) Sync() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	switch {
	case f.closed:
		return fmt.Errorf("session %q: %w", f.header.ID, session.ErrClosed)
	case f.broken != nil:
		return f.broken
	case f.log == nil:
		return nil
	}
	return f.sync()
}

func (f *file) sync() error {
	if err := f.log.Sync(); err != nil {
		return err
	}
	if f.named || runtime.GOOS == "windows" { // which has no way to sync a directory
		return nil
	}
	for _, dir := range []string{f.store.dir(f.header.ID), f.store.root} {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	f.named = true
	return nil
}

// Close implements session.Session.
func (f *file) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	empty := f.log != nil && f.size == 0 // its first event could not be written
	if f.log != nil && f.broken == nil && !empty {
		err = f.sync()
	}
	err = errors.Join(err, f.release())
	if empty {
		for _, name := range []string{logName, lockName, ""} {
			err = errors.Join(err, os.Remove(filepath.Join(f.store.dir(f.header.ID), name)))
		}
	}
	f.store.leave(f)
	return err
}

// release closes the files, the lock last.
func (f *file) release() error {
	var errs []error
	for _, open := range []**os.File{&f.log, &f.lock} {
		if *open != nil {
			errs = append(errs, (*open).Close())
			*open = nil
		}
	}
	return errors.Join(errs...)
}

// Header implements session.Session.
func (f *file) Header() session.Header { return f.header }

// Recovery implements session.Session.
func (f *file) Recovery() session.Recovery { return f.recovery }

// Events implements session.Session.
func (f *file) Events() []session.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[:len(f.events):len(f.events)]
}

// Messages implements session.Session.
func (f *file) Messages() []llm.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Messages()
}

// Surface implements session.Session.
func (f *file) Surface() []session.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Surface()
}

// Position implements session.Session.
func (f *file) Position() session.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Position()
}

// SandboxMode implements session.Session.
func (f *file) SandboxMode() (sandbox.Mode, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.SandboxMode()
}
