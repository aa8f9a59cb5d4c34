package session

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Event is an entry of a log.
type Event struct {
	Seq  int64     // from 0, without a gap
	Time time.Time // to the millisecond
	Data Data
}

// MaxEventBytes is how long a line of a log may be. What a model writes is bounded by that too.
const MaxEventBytes = 16 << 20

// NewID returns an id that no other session has.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("session-%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const maxID = 128 // bytes

// validID leaves the length alone: a bound in the expression would cost half a millisecond of every start.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckID returns an *InvalidError if id cannot be a session's: it has to be one plain name wherever it is used.
func CheckID(id string) error {
	if len(id) > maxID || !validID.MatchString(id) || strings.HasSuffix(id, ".") {
		return &InvalidError{fmt.Sprintf("session id %q must be letters, digits, '.', '_' and '-', beginning with a letter or digit, and no more than %d bytes", id, maxID)}
	}
	return nil
}

// Header returns the header of a session that begins now.
func (n New) Header(now time.Time) (Header, error) {
	if n.ID == "" {
		n.ID = NewID()
	}
	if err := CheckID(n.ID); err != nil {
		return Header{}, err
	}
	if !filepath.IsAbs(n.CWD) {
		return Header{}, &InvalidError{fmt.Sprintf("session header cwd must be an absolute path, got %q", n.CWD)}
	}
	return Header{Version: Version, ID: n.ID, CreatedAt: milli(now), CWD: strings.ToValidUTF8(n.CWD, "\uFFFD")}, nil
}

// NewEvent returns the event that says d, independent of d, as it will be read from the log. The error is an
// *InvalidError.
func NewEvent(seq int64, now time.Time, d Data) (Event, error) {
	e := Event{Seq: seq, Time: milli(now), Data: d}
	line, err := encode(e)
	if err != nil {
		return Event{}, &InvalidError{err.Error()}
	}
	if len(line) > MaxEventBytes {
		return Event{}, &InvalidError{fmt.Sprintf("an event of %d bytes; the most is %d", len(line), MaxEventBytes)}
	}
	var read Event
	// Raw JSON is the one part that encoding does not make UTF-8.
	if err := json.Unmarshal(bytes.ToValidUTF8(line, []byte("\uFFFD")), &read); err != nil {
		return Event{}, &InvalidError{err.Error()}
	}
	return read, nil
}

func milli(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

type headerLine struct {
	Type      string `json:"type"`
	Version   int    `json:"version"`
	ID        string `json:"id"`
	CreatedAt int64  `json:"createdAt"`
	CWD       string `json:"cwd"`
}

// MarshalJSON returns the first line of a log.
func (h Header) MarshalJSON() ([]byte, error) {
	return encode(headerLine{"session", h.Version, h.ID, h.CreatedAt.UnixMilli(), h.CWD})
}

// UnmarshalJSON reads the first line of a log, and refuses a version that is not Version.
func (h *Header) UnmarshalJSON(b []byte) error {
	var line headerLine
	if err := json.Unmarshal(b, &line); err != nil {
		return fmt.Errorf("the first line is not a session header: %w", err)
	}
	switch {
	case line.Type != "session":
		return errors.New("the first line is not a session header")
	case line.Version > Version:
		return fmt.Errorf("log format v%d, but this dsh reads only v%d: the log was written by a newer one", line.Version, Version)
	case line.Version != Version:
		return fmt.Errorf("log format v%d, but this dsh reads only v%d", line.Version, Version)
	case !filepath.IsAbs(line.CWD):
		return fmt.Errorf("session header cwd must be an absolute path, got %q", line.CWD)
	case line.CreatedAt < 0:
		return errors.New("session header createdAt must not be negative")
	}
	if err := CheckID(line.ID); err != nil {
		return err
	}
	*h = Header{line.Version, line.ID, time.UnixMilli(line.CreatedAt).UTC(), line.CWD}
	return nil
}

type eventLine struct {
	Type Type            `json:"type"`
	Seq  *int64          `json:"seq"`
	Time *int64          `json:"time"`
	Data json.RawMessage `json:"data"`
}

// MarshalJSON returns a line of a log.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Data == nil {
		return nil, errors.New("an event without data")
	}
	if _, unknown := e.Data.(*Unknown); unknown {
		return nil, errors.New("events of unknown types are not written")
	}
	data, err := encode(e.Data)
	if err != nil {
		return nil, err
	}
	ms := e.Time.UnixMilli()
	return encode(eventLine{e.Data.Type(), &e.Seq, &ms, data})
}

// UnmarshalJSON reads a line of a log. What the type does not have is ignored.
func (e *Event) UnmarshalJSON(b []byte) error {
	var line eventLine
	if err := json.Unmarshal(b, &line); err != nil {
		return err
	}
	if line.Type == "" || line.Seq == nil || line.Time == nil || line.Data == nil || string(line.Data) == "null" {
		return errors.New("an event has a type, a seq, a time and data")
	}
	data := dataOf(line.Type)
	if data == nil {
		*e = Event{*line.Seq, time.UnixMilli(*line.Time).UTC(), &Unknown{line.Type, bytes.Clone(line.Data)}}
		return nil
	}
	if err := json.Unmarshal(line.Data, data); err != nil {
		return fmt.Errorf("%s: %w", line.Type, err)
	}
	*e = Event{*line.Seq, time.UnixMilli(*line.Time).UTC(), data}
	return nil
}

// encode is json.Marshal without escapes for HTML: a log is read by people too.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// WriteLine writes v, a Header or an Event, as a line of a log.
func WriteLine(w io.Writer, v any) error {
	line, err := encode(v)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

func dataOf(t Type) Data {
	switch t {
	case TypeTurnStart:
		return &TurnStart{}
	case TypeTurnEnd:
		return &TurnEnd{}
	case TypeStepStart:
		return &StepStart{}
	case TypeStepEnd:
		return &StepEnd{}
	case TypeUserMessage:
		return &UserMessage{}
	case TypeAssistantMessage:
		return &AssistantMessage{}
	case TypeToolCall:
		return &ToolCall{}
	case TypeToolResult:
		return &ToolResult{}
	case TypeLLMRetry:
		return &LLMRetry{}
	case TypeSandboxMode:
		return &SandboxMode{}
	case TypeApprovalAsked:
		return &ApprovalAsked{}
	case TypeApprovalDecided:
		return &ApprovalDecided{}
	case TypeCompactionStart:
		return &CompactionStart{}
	case TypeCompactionSummary:
		return &CompactionSummary{}
	case TypeCompactionEnd:
		return &CompactionEnd{}
	}
	return nil
}
