package toolslocal_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"dsh/modules/approval"
	"dsh/modules/tools"
	"dsh/modules/toolslocal"
)

type says struct {
	outcome approval.Outcome
	during  func()
	asked   []approval.Request
}

func (s *says) Ask(_ context.Context, r approval.Request) approval.Outcome {
	s.asked = append(s.asked, r)
	if s.during != nil {
		s.during()
	}
	return s.outcome
}

func TestWhatAskingCameTo(t *testing.T) {
	session := &tools.SessionRef{ID: "session-1", CWD: "/"}
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name    string
		service *says
		session *tools.SessionRef
		deny    bool // the next hook does
		code    string
		want    string
		asked   int
	}{
		{"a yes", &says{outcome: approval.AllowedOnce}, session, false, "", "", 1},
		{"a yes, and another hook's no", &says{outcome: approval.AllowedOnce}, session, true, tools.CodeDenied, "not by me", 1},
		{"a no", &says{outcome: approval.Rejected}, session, false, tools.CodeDenied, `the user rejected tool "t"`, 1},
		{"cancelled", &says{outcome: approval.Cancelled}, session, false, tools.CodeDenied, `approval for tool "t" was cancelled`, 1},
		{"nobody there", &says{outcome: approval.Unavailable}, session, false, tools.CodeDenied, `tool "t" requires approval, but no approval channel is available`, 1},
		{"no word that anybody knows", &says{outcome: "yes"}, session, false, tools.CodeDenied, `tool "t" requires approval, but no approval channel is available`, 1},
		{"no session", &says{outcome: approval.AllowedOnce}, nil, false, tools.CodeDenied, `tool "t" requires approval, but the call has no agent to route it through`, 0},
		{"no service", nil, session, false, tools.CodeDenied, "may it?", 0},
		{"the caller has gone meanwhile", &says{outcome: approval.AllowedOnce, during: cancel}, session, false, tools.CodeAbortedBefore, "tool call aborted before dispatch", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := toolslocal.Params{Log: slog.New(slog.DiscardHandler)}
			if c.service != nil {
				p.Approval = c.service
			}
			r := toolslocal.New(p).Registry
			d := tool(map[string]any{"a": "", "b": ""}, nil)
			ran := false
			d.Execute = func(context.Context, tools.Execution) (any, error) {
				ran = true
				return map[string]any{"a": "", "b": ""}, nil
			}
			d.Render = func(json.RawMessage) (string, error) { return "done", nil }
			if _, err := r.Register(d); err != nil {
				t.Fatal(err)
			}
			r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
				return tools.Decision{Verdict: tools.Ask, Reason: "may it?"}, nil
			})
			if c.deny {
				r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
					return tools.Decision{Verdict: tools.Deny, Reason: "not by me"}, nil
				})
			}
			got := r.Execute(ctx, tools.Execution{CallID: "7", Name: "t", Arguments: json.RawMessage(`{"x":1}`), Session: c.session})
			if c.code == "" {
				if got.Error != nil || got.Content != "done" {
					t.Errorf("got %+v", got)
				}
			} else if got.Error == nil || got.Error.Code != c.code || got.Error.Message != c.want {
				t.Errorf("got %+v, want %s %q", got.Error, c.code, c.want)
			}
			if ran != (c.code == "") {
				t.Errorf("the tool was run: %v", ran)
			}
			if c.service == nil {
				return
			}
			if len(c.service.asked) != c.asked {
				t.Fatalf("asked %d times, want %d", len(c.service.asked), c.asked)
			}
			want := approval.Request{SessionID: "session-1", Tool: "t", CallID: "7", Reason: "may it?", Detail: `{"x":1}`}
			if c.asked > 0 && c.service.asked[0] != want {
				t.Errorf("asked %+v, want %+v", c.service.asked[0], want)
			}
		})
	}
}
