package toolbash

import (
	"encoding/json"
	"fmt"
	"strings"

	"dsh/modules/sandbox"
	"dsh/modules/shell"
)

// The kinds of a value.
const (
	foregroundKind = "foreground"
	backgroundKind = "background"
)

// foreground is the value of a command that was run to its end.
type foreground struct {
	Kind string `json:"kind"`
	shell.Result
}

// render returns what a model reads. The order of the parts is fixed, and how the command ended comes last: readers
// look for it there.
func (b *bash) render(value json.RawMessage) (string, error) {
	var v struct {
		foreground
		JobID string `json:"jobId"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return "", err
	}
	if v.Kind == backgroundKind {
		return "started background job " + v.JobID, nil
	}
	text := body(v.Stdout, v.Stderr)
	if lines := b.markers(v.Result); len(lines) > 0 {
		text = onNewLine(text) + strings.Join(lines, "\n")
	}
	return text, nil
}

func body(stdout, stderr shell.Output) string {
	text := stream(stdout)
	if stderr.Text != "" {
		text = onNewLine(text) + "[stderr]\n" + stream(stderr)
	}
	if text == "" {
		return "(no output)"
	}
	return text
}

func stream(o shell.Output) string {
	if !o.Truncated {
		return o.Text
	}
	path := o.SpillPath
	if path == "" {
		path = "(unavailable)"
	}
	return o.Text + "\n[output truncated; full output: " + path + "]"
}

func (b *bash) markers(r shell.Result) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.TimeoutClamped {
		add("[timeout reduced to %dms]", r.TimeoutMs)
	}
	if r.Survivors > 0 {
		add("[%d process(es) of this command still running; they end with the session]", r.Survivors)
	}
	if r.OOMKilled {
		add("[killed: out of memory]")
	}
	if r.Sandbox != nil && r.Sandbox.Denied {
		lines = append(lines, sandbox.DeniedMarker(r.Sandbox.Mode))
		if b.confines {
			lines = append(lines, sandbox.EscalationHint("command"))
		}
	}
	if r.TimedOut {
		add("[timed out after %dms]", r.TimeoutMs)
	}
	switch {
	case r.Signal != nil:
		add("[killed by signal: %s]", *r.Signal)
	case r.ExitCode == nil:
		add("[exit code: null]")
	case *r.ExitCode != 0:
		add("[exit code: %d]", *r.ExitCode)
	}
	return lines
}

// onNewLine returns text such that what is appended starts a line.
func onNewLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
