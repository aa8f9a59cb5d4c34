package llmopenai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"dsh/modules/llm"
)

const (
	maxErrorBytes  = 1 << 20  // of the body of a response that is no stream
	maxLineBytes   = 8 << 20  // of one event of a stream
	maxStreamBytes = 64 << 20 // of all that is said in one response
)

// exchange is one HTTP exchange, between the library and the network. It sees to what the library leaves open: that
// everything is bounded, that a stream's comments neither count as messages nor pile up, and how a stream ended.
type exchange struct {
	http *http.Client
	// moved is called whenever something has arrived.
	moved func()

	header http.Header // of the response
	done   bool        // the stream said that it is complete
}

// Do implements openai.HTTPDoer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := completeMessages(req); err != nil {
		return nil, err
	}
	resp, err := x.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.moved()
	x.header = resp.Header
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		if err := isStream(resp); err != nil {
			return nil, errors.Join(err, resp.Body.Close())
		}
		resp.Body = &stream{exchange: x, body: resp.Body, lines: bufio.NewReader(resp.Body)}
	} else {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBytes), resp.Body}
	}
	return resp, nil
}

// isStream refuses what a web server or an API of another kind answers.
func isStream(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/html" && kind != "application/json" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	return &llm.Error{
		Code: llm.CodeMalformedResponse, Err: err,
		Message: fmt.Sprintf("the server answered with %s instead of a stream: %s", kind, plain(text)),
	}
}

// completeMessages puts an empty content where the library leaves it out: servers refuse an assistant's message without
// one, even when it has tool calls.
func completeMessages(req *http.Request) error {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	var body map[string]json.RawMessage
	var messages []map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &body), json.Unmarshal(body["messages"], &messages)); err != nil {
		return err
	}
	for _, m := range messages {
		if m["content"] == nil {
			m["content"] = json.RawMessage(`""`)
		}
	}
	if body["messages"], err = json.Marshal(messages); err != nil {
		return err
	}
	if text, err = json.Marshal(body); err != nil {
		return err
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return nil
}

// stream is the body of a response, of which it passes on the lines with data.
type stream struct {
	*exchange
	body  io.ReadCloser
	lines *bufio.Reader
	total int64
	rest  []byte // of the line that is being passed on
}

var errTooLong = errors.New("the response is longer than any model's should be")

func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		line, err := s.line()
		if err != nil {
			return 0, err // what stands on a line without an end is no event
		}
		data, is := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if data = bytes.TrimSpace(data); !is || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			s.done = true
		}
		if s.total += int64(len(data)); s.total > maxStreamBytes {
			return 0, errTooLong
		}
		// The library waits for another line after one that it takes for an error; the space keeps it from doing so.
		if rest, is := bytes.CutPrefix(data, []byte(`{"error":`)); is {
			data = append([]byte(`{ "error":`), rest...)
		}
		s.rest = fmt.Appendf(nil, "data: %s\n", data)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// line returns the next whole line.
func (s *stream) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := s.lines.ReadSlice('\n')
		if len(piece) > 0 {
			s.moved()
		}
		if len(line)+len(piece) > maxLineBytes {
			return nil, errTooLong
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (s *stream) Close() error { return s.body.Close() }

// watch ends something when nothing has moved for a while.
type watch struct {
	idle  time.Duration
	timer *time.Timer
}

func newWatch(idle time.Duration, end func()) *watch { return &watch{idle, time.AfterFunc(idle, end)} }

// moved begins the time anew, unless it has run out.
func (w *watch) moved() {
	if w.timer.Stop() {
		w.timer.Reset(w.idle)
	}
}

func (w *watch) stop() { w.timer.Stop() }
