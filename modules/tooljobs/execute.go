package tooljobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"dsh/modules/jobs"
	"dsh/modules/tools"
)

// The values of the tools.
type (
	outputValue struct {
		Text string   `json:"text"`
		Job  snapshot `json:"job"`
	}
	listValue struct {
		Jobs []snapshot `json:"jobs"`
	}
	killValue struct {
		AlreadyFinished bool     `json:"alreadyFinished"`
		Job             snapshot `json:"job"`
	}
)

// snapshot is the public part of a job. Times are in milliseconds since 1970.
type snapshot struct {
	ID         string      `json:"id"`
	Kind       string      `json:"kind"`
	Label      string      `json:"label"`
	Status     jobs.Status `json:"status"`
	Detail     string      `json:"detail,omitempty"`
	StartedAt  int64       `json:"startedAt"`
	FinishedAt *int64      `json:"finishedAt,omitempty"`
}

func public(s jobs.Snapshot) snapshot {
	p := snapshot{
		ID: s.ID, Kind: s.Kind, Label: utf8(s.Label), Status: s.Status, Detail: utf8(s.Detail), StartedAt: s.StartedAt.UnixMilli(),
	}
	if !s.FinishedAt.IsZero() {
		at := s.FinishedAt.UnixMilli()
		p.FinishedAt = &at
	}
	return p
}

func utf8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func (t *toolset) executeOutput(ctx context.Context, e tools.Execution) (any, error) {
	a, err := parse(e.Arguments)
	if err != nil {
		return nil, err
	}
	if a.wait {
		timeout, err := t.timeout(a)
		if err != nil {
			return nil, err
		}
		if _, err := t.jobs.Wait(ctx, session(e), a.id, timeout); err != nil {
			return nil, coded(err)
		}
	}
	r, err := t.jobs.Read(session(e), a.id)
	if err != nil {
		return nil, coded(err)
	}
	return outputValue{Text: utf8(r.Text), Job: public(r.Job)}, nil
}

func (t *toolset) executeList(_ context.Context, e tools.Execution) (any, error) {
	v := listValue{Jobs: []snapshot{}}
	for _, s := range t.jobs.List(session(e)) {
		v.Jobs = append(v.Jobs, public(s))
	}
	return v, nil
}

func (t *toolset) executeKill(_ context.Context, e tools.Execution) (any, error) {
	a, err := parse(e.Arguments)
	if err != nil {
		return nil, err
	}
	s, asked, err := t.jobs.Kill(session(e), a.id, a.reason)
	if err != nil {
		return nil, coded(err)
	}
	return killValue{AlreadyFinished: !asked, Job: public(s)}, nil
}

// arguments are those of job_output and job_kill. The schemas have been kept.
type arguments struct {
	id      string
	wait    bool
	timeout json.RawMessage // nil: not given
	reason  string
}

// parse looks members up by their exact names: one that differs in case is another member.
func parse(raw json.RawMessage) (a arguments, err error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return a, invalid("invalid arguments: %v", err)
	}
	for name, into := range map[string]any{"job_id": &a.id, "wait": &a.wait, "reason": &a.reason} {
		if m, ok := members[name]; ok && json.Unmarshal(m, into) != nil {
			return a, invalid("invalid %s", name)
		}
	}
	if strings.TrimSpace(a.id) == "" {
		given, _ := json.Marshal(jobs.Clip(a.id, 80))
		return a, invalid("invalid job_id: expected a non-empty string, got %s", given)
	}
	a.timeout = members["timeout_ms"]
	return a, nil
}

// timeout returns how long to wait.
func (t *toolset) timeout(a arguments) (time.Duration, error) {
	most := float64(t.config.MaxWaitTimeoutMs)
	ms := float64(t.config.WaitTimeoutMs)
	if a.timeout != nil {
		if err := json.Unmarshal(a.timeout, &ms); err != nil || ms <= 0 {
			return 0, invalid("invalid wait timeout: expected a positive number of milliseconds, got %s", jobs.Clip(string(a.timeout), 80))
		}
	}
	return time.Duration(math.Ceil(min(ms, most) * float64(time.Millisecond))), nil
}

func invalid(format string, args ...any) error {
	return &tools.Error{Code: tools.CodeInvalidArgs, Message: fmt.Sprintf(format, args...)}
}

// coded gives an error of the registry its code.
func coded(err error) error {
	var unknown *jobs.UnknownError
	var foreign *jobs.ForeignError
	var request *jobs.InvalidError
	switch {
	case errors.As(err, &unknown), errors.As(err, &foreign):
		return &tools.Error{Code: jobs.CodeUnknown, Message: err.Error()}
	case errors.As(err, &request):
		return &tools.Error{Code: tools.CodeInvalidArgs, Message: err.Error()}
	}
	return err
}
