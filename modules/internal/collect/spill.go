package collect

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// spill is the file with the whole of a stream: not made before it is needed, and given up at the first trouble.
type spill struct {
	limit   int64
	create  func() (*os.File, error)
	trouble func(error)

	mu     sync.Mutex
	file   *os.File
	over   bool // given up, or never to be had
	sealed bool
}

// write adds p, which ends the stream at end. The first call finds in held all that came before. It returns the path
// if the file now holds the whole stream.
func (s *spill) write(held func() [2][]byte, p []byte, end int64) string {
	if s.over || s.limit == 0 || s.create == nil {
		return ""
	}
	if end > s.limit {
		s.abandon(nil)
		return ""
	}
	if s.file == nil {
		f, err := s.create()
		if err != nil {
			s.abandon(err)
			return ""
		}
		s.file = f
		for _, part := range held() {
			if _, err := f.Write(part); err != nil {
				s.abandon(err)
				return ""
			}
		}
	}
	if _, err := s.file.Write(p); err != nil {
		s.abandon(err)
		return ""
	}
	return s.file.Name()
}

// seal closes the file, and reports whether it is whole: a close can be the first to learn that a write failed.
func (s *spill) seal() bool {
	s.sealed = true
	if s.file == nil {
		return false
	}
	if err := s.file.Close(); err != nil {
		name := s.file.Name()
		s.file = nil
		s.report(errors.Join(err, os.Remove(name)))
		return false
	}
	s.file = nil
	return true
}

// abandon gives the file up; a nil cause is a stream that became too long, which is no trouble.
func (s *spill) abandon(cause error) {
	s.over = true
	if s.file != nil {
		name := s.file.Name()
		err := errors.Join(s.file.Close(), os.Remove(name))
		s.file = nil
		if cause == nil && err != nil {
			cause = fmt.Errorf("remove an outgrown file: %w", err)
		}
	}
	if cause != nil {
		s.report(cause)
	}
}

func (s *spill) report(err error) {
	if s.trouble != nil {
		s.trouble(err)
	}
}
