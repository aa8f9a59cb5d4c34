package sessionjsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dsh/modules/llm"
	"dsh/modules/session"
)

// contents is a log as it was read.
type contents struct {
	header      session.Header
	events      []session.Event
	good, total int64 // bytes: up to the end of the last event, and of the file
}

// read reads a log. What follows its last good line is left out, unless the end of a turn comes after it: a crash can
// damage only what had not been synced.
func read(r io.Reader, id, path string) (contents, error) {
	damaged := func(line int, format string, args ...any) error {
		return &session.DamageError{ID: id, File: path, Line: line, Reason: fmt.Sprintf(format, args...)}
	}
	lines := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	var got contents
	var fault error // of the first line that is not what should be there
	for n := 1; ; n++ {
		line, complete, err := lines.next()
		if err != nil {
			return got, err
		}
		got.total = lines.read
		if !complete {
			if n == 1 {
				return got, damaged(1, "empty or header-less session log")
			}
			return got, nil
		}
		if n == 1 {
			if err := json.Unmarshal(line, &got.header); err != nil {
				return got, damaged(1, "%v", err)
			}
			if got.header.ID != id {
				return got, damaged(1, "the header's id is %q", got.header.ID)
			}
			got.good = lines.read
			continue
		}
		if fault == nil {
			e, err := event(line, int64(len(got.events)))
			if err == nil {
				got.events = append(got.events, e)
				got.good = lines.read
				continue
			}
			fault = damaged(n, "%v", err)
		}
		if endsTurn(line) {
			return got, fault
		}
	}
}

func event(line []byte, seq int64) (session.Event, error) {
	var e session.Event
	if line == nil {
		return e, fmt.Errorf("a line of more than %d bytes", session.MaxEventBytes)
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	if e.Seq != seq {
		return e, fmt.Errorf("seq gap: got %d, expected %d", e.Seq, seq)
	}
	return e, nil
}

// endsTurn reports whether a line is the end of a turn, wherever it stands.
func endsTurn(line []byte) bool {
	var e session.Event
	if json.Unmarshal(line, &e) != nil {
		return false
	}
	_, is := e.Data.(*session.TurnEnd)
	return is
}

// begin reads a log up to the first text of the user's, which comes within a few lines.
func begin(r io.Reader, id, path string) (header session.Header, task string, err error) {
	const most = 100
	lines := &lineReader{r: bufio.NewReader(r)}
	var begun bytes.Buffer
	for range most {
		line, complete, err := lines.next()
		if err != nil {
			return header, "", err
		}
		if !complete {
			break
		}
		begun.Write(append(line, '\n'))
		var e session.Event
		if json.Unmarshal(line, &e) != nil {
			continue // the header, or damage
		}
		if m, is := e.Data.(*session.UserMessage); is && m.Message.Source.Kind == llm.SourceUser {
			task = m.Message.Text()
			break
		}
	}
	got, err := read(&begun, id, path)
	return got.header, task, err
}

// lineReader reads lines, of which it keeps no more than an event may have.
type lineReader struct {
	r    *bufio.Reader
	read int64 // bytes so far
	buf  []byte
}

// next returns the next line without its end, which is valid until the next call; nil if it is too long. What the input
// ends with, if not with a line's end, is not complete.
func (l *lineReader) next() (line []byte, complete bool, err error) {
	l.buf = l.buf[:0]
	tooLong := false
	for {
		piece, err := l.r.ReadSlice('\n')
		l.read += int64(len(piece))
		if tooLong = tooLong || len(l.buf)+len(piece) > session.MaxEventBytes+1; !tooLong {
			l.buf = append(l.buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case tooLong:
			return nil, true, nil
		default:
			return bytes.TrimSuffix(l.buf, []byte("\n")), true, nil
		}
	}
}
