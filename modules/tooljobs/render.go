package tooljobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"dsh/modules/jobs"
	"dsh/modules/tools"
)

func (s snapshot) mark() string {
	return jobs.StatusMark(jobs.Snapshot{Status: s.Status, Detail: s.Detail})
}

func renderOutput(value json.RawMessage) (string, error) {
	var v outputValue
	if err := json.Unmarshal(value, &v); err != nil {
		return "", err
	}
	body, mark := v.parts()
	return body + mark, nil
}

// parts returns the output, complete with a newline, and the line with the status.
func (v outputValue) parts() (body, mark string) {
	if body = v.Text; body == "" {
		body = "(no new output)"
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return body, v.Job.mark()
}

// oneLine keeps a label from passing for further jobs.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

func renderList(value json.RawMessage) (string, error) {
	var v listValue
	if err := json.Unmarshal(value, &v); err != nil {
		return "", err
	}
	if len(v.Jobs) == 0 {
		return "(no background jobs)", nil
	}
	lines := make([]string, len(v.Jobs))
	for i, j := range v.Jobs {
		lines[i] = fmt.Sprintf("%s [%s] %s — %s", j.ID, j.Kind, j.Status, oneLine.Replace(j.Label))
	}
	return strings.Join(lines, "\n"), nil
}

func renderKill(value json.RawMessage) (string, error) {
	var v killValue
	if err := json.Unmarshal(value, &v); err != nil {
		return "", err
	}
	if v.AlreadyFinished {
		return fmt.Sprintf("job %s had already finished %s", v.Job.ID, v.Job.mark()), nil
	}
	return "requested cancellation of job " + v.Job.ID, nil
}

// bound is the hook that keeps texts about a job within its limit, denials included. It sees only jobs that the caller
// can see.
func (t *toolset) bound(_ context.Context, e tools.Execution, r tools.Result) (tools.Result, error) {
	if e.Name != outputName && e.Name != killName {
		return r, nil
	}
	a, err := parse(e.Arguments)
	if err != nil {
		return r, nil
	}
	s, err := t.jobs.Find(session(e), a.id)
	if err != nil || s.OutputLimitBytes == 0 || int64(len(r.Content)) <= s.OutputLimitBytes {
		return r, nil
	}
	r.Content = cut(r, int(s.OutputLimitBytes))
	return r, nil
}

// cut returns the content within limit. Of output as it was rendered, the status line stays.
func cut(r tools.Result, limit int) string {
	const output, result = "\n[output truncated]", "\n[result truncated]"
	var v outputValue
	if r.Error == nil && json.Unmarshal(r.Value, &v) == nil && v.Job.ID != "" {
		if body, mark := v.parts(); body+mark == r.Content {
			return within(body, output+"\n"+mark, limit)
		}
	}
	return within(r.Content, result, limit)
}

// within returns the beginning of text and suffix in at most limit bytes; when even the suffix does not fit, its end.
func within(text, suffix string, limit int) string {
	if room := limit - len(suffix); room >= 0 {
		return jobs.Clip(text, room) + suffix
	}
	return strings.ToValidUTF8(suffix[len(suffix)-limit:], "")
}
