//go:build unix

package subprocesslocal

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/internal/collect"
)

const (
	chunk = 64 << 10 // what a pipe holds when it is made
	// bigChunk is what a pipe is made to hold once a stream has filled one: fewer, larger reads. Not from the start, as
	// the kernel accounts for it per user.
	bigChunk = 512 << 10
)

// Buffers are taken when there is something to read, so that a waiting stream has none.
var (
	chunks    = sync.Pool{New: func() any { return &buffer{make([]byte, chunk)} }}
	bigChunks = sync.Pool{New: func() any { return &buffer{make([]byte, bigChunk)} }}
)

type buffer struct{ bytes []byte }

func (b *buffer) release() {
	if len(b.bytes) == bigChunk {
		bigChunks.Put(b)
	} else {
		chunks.Put(b)
	}
}

// stream reads a pipe to its end, and collects what it reads until it is sealed.
type stream struct {
	file   *os.File
	conn   syscall.RawConn
	tee    func([]byte)
	kept   *collect.Collector
	sealed chan struct{} // closed when nothing more will be collected
	seal   sync.Once

	// What follows is run's alone. attempt is made once, as reads may be many.
	attempt func(fd uintptr) bool
	large   bool
	limit   int
	buf     *buffer
	n       int
	err     error
}

func newStream(file *os.File, tee func([]byte), kept *collect.Collector) *stream {
	s := &stream{file: file, tee: tee, kept: kept, sealed: make(chan struct{})}
	s.conn, _ = file.SyscallConn() // fails for a nil file alone
	s.attempt = s.try
	return s
}

// run reads to the end of the pipe. Sealing is not the end: a survivor must be able to write on.
func (s *stream) run() {
	defer s.file.Close()
	defer s.abandon()
	for {
		n, err := s.next(-1)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.rest()
			s.abandon()
		case err != nil || n == 0:
			return
		}
	}
}

// rest takes what is in the pipe at this moment, and not what comes meanwhile, which may be without end.
func (s *stream) rest() {
	s.file.SetReadDeadline(time.Time{})
	left := 0
	s.conn.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), fionread) })
	for left > 0 {
		n, err := s.next(left)
		if err != nil || n == 0 {
			return
		}
		left -= n
	}
}

// next waits for bytes, takes up to limit of them (-1: as many as there are), and returns how many it took.
func (s *stream) next(limit int) (int, error) {
	s.limit = limit
	if err := s.conn.Read(s.attempt); err != nil {
		return 0, err
	}
	defer s.buf.release()
	if s.n > 0 && !s.isSealed() {
		if s.tee != nil {
			s.tee(s.buf.bytes[:s.n])
		}
		s.kept.Write(s.buf.bytes[:s.n])
	}
	return s.n, s.err
}

// try reads once, and reports whether there was anything to learn.
func (s *stream) try(fd uintptr) bool {
	s.buf = s.buffer()
	p := s.buf.bytes
	if s.limit >= 0 && s.limit < len(p) {
		p = p[:s.limit]
	}
	for {
		s.n, s.err = unix.Read(int(fd), p)
		if !errors.Is(s.err, unix.EINTR) {
			break
		}
	}
	if errors.Is(s.err, unix.EAGAIN) {
		s.buf.release()
		return false
	}
	if s.n == chunk && !s.large {
		s.large = enlarge(int(fd), bigChunk)
	}
	return true
}

func (s *stream) buffer() *buffer {
	if s.large {
		return bigChunks.Get().(*buffer)
	}
	return chunks.Get().(*buffer)
}

// finish asks run to collect what is there, and no more.
func (s *stream) finish() { s.file.SetReadDeadline(time.Unix(1, 0)) }

// abandon seals the stream as it is.
func (s *stream) abandon() {
	s.seal.Do(func() {
		s.kept.Seal()
		close(s.sealed)
	})
}

func (s *stream) isSealed() bool {
	select {
	case <-s.sealed:
		return true
	default:
		return false
	}
}

// close ends run, whoever still holds the pipe.
func (s *stream) close() { s.file.Close() }
