package headlessrunner

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dsh/internal/visible"
	"dsh/modules/agent"
	"dsh/modules/session"
)

// watcher tells a person how a task goes.
type watcher struct {
	task  agent.Task
	calls map[string]*session.ToolCall // that have no result yet
}

const mostShown = 160 // bytes of what a call does

func (w *watcher) progress(format string, args ...any) { line(w.task.Progress, format, args...) }

func (w *watcher) warn(format string, args ...any) { line(w.task.Warn, format, args...) }

func line(to func(string), format string, args ...any) {
	if to != nil {
		to(visible.Line(fmt.Sprintf(format, args...), 4*mostShown))
	}
}

func (w *watcher) begun(s session.Session, resumed bool) {
	if !resumed {
		w.progress("session %s", s.Header().ID)
		return
	}
	w.progress("session %s, resumed after %d turns", s.Header().ID, s.Position().Turns)
	switch r := s.Recovery(); {
	case r.CutBytes > 0:
		w.warn("the session's host died while it wrote: cut off the last %d bytes of the log", r.CutBytes)
	case r.Closed > 0:
		w.warn("the session's host died in the middle of a turn, which is closed as interrupted")
	}
}

func (w *watcher) observe(u agent.Update) {
	switch d := u.Event.Data.(type) {
	case *session.ToolCall:
		if w.calls == nil {
			w.calls = map[string]*session.ToolCall{}
		}
		w.calls[d.CallID] = d
	case *session.ToolResult:
		id := d.Message.Source.CallID
		if c := w.calls[id]; c != nil {
			delete(w.calls, id)
			w.progress("%s %s%s", took(u.Took), shown(c), failed(d))
		}
	case *session.LLMRetry:
		w.progress("the model failed (%s: %s); retry %d of %d in %s", d.Failure.Code, d.Failure.Message, d.Retry, d.MaxRetries,
			time.Duration(d.DelayMs)*time.Millisecond)
	case *session.CompactionStart:
		w.progress("summarising the conversation, which nearly fills the context window")
	case *session.CompactionEnd:
		if d.Error != nil {
			w.progress("the conversation could not be summarised: %s", d.Error.Message)
		}
	}
}

// took returns a duration in as many columns as most of them need.
func took(d time.Duration) string { return fmt.Sprintf("%7.3fs", d.Seconds()) }

// shown returns what a call does: the command that it runs, if it runs one.
func shown(c *session.ToolCall) string {
	var a struct{ Command string }
	what := c.Arguments
	if json.Unmarshal([]byte(c.Arguments), &a) == nil && a.Command != "" {
		what = a.Command
	}
	return strings.TrimSpace(c.Name + " " + visible.Line(strings.TrimSpace(what), mostShown))
}

// failed says how a call failed, if it did: by its error, or by the marker at the end of what the model reads.
func failed(d *session.ToolResult) string {
	if d.Error != nil {
		return " [" + d.Error.Code + "]"
	}
	text := strings.TrimRight(d.Message.Content[0].Text, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	for _, prefix := range []string{"[exit code: ", "[killed by signal: ", "[timed out after "} {
		if strings.HasPrefix(last, prefix) && strings.HasSuffix(last, "]") && len(last) < 60 {
			return " " + last
		}
	}
	return ""
}
