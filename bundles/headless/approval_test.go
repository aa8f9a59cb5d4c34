package headless_test

import (
	"strings"
	"testing"

	"dsh/composetest"
	"dsh/modules/agent"
	"dsh/modules/approval"
	"dsh/modules/session"
)

const escalating = `
- tools: [{name: bash, arguments: {command: "touch made", description: test, sandbox_permissions: workspace-write, justification: to make it}}]
- expect: {lastToolResult: "the user rejected"}
  text: I may not.
`

func TestWhatIsAskedForApprovalIsInTheLogWithTheAnswer(t *testing.T) {
	r := start(t, escalating, composetest.Set("sandbox-policy.mode=read-only"), composetest.Set("approval.policy=never"))
	var l lines
	report := run(t.Context(), t, r, l.task("make it", t.TempDir()))
	log, err := composetest.Value[session.Store](t, r).Read(t.Context(), report.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	var trace []string
	for _, e := range log.Events {
		switch d := e.Data.(type) {
		case *session.ToolCall:
			trace = append(trace, "call")
		case *session.ApprovalAsked:
			if d.ToolName != "bash" || d.CallID == "" || d.Reason != "escalate sandbox to workspace-write: to make it" {
				t.Errorf("asked %+v", d)
			}
			trace = append(trace, "asked")
		case *session.ApprovalDecided:
			if d.Outcome != approval.Rejected {
				t.Errorf("decided %+v", d)
			}
			trace = append(trace, "decided")
		case *session.ToolResult:
			trace = append(trace, "result "+d.Error.Code)
		}
	}
	if got := strings.Join(trace, ", "); got != "call, asked, decided, result DENIED" {
		t.Errorf("got %s", got)
	}
	if report.Outcome.Text != "I may not." {
		t.Errorf("got %+v", report.Outcome)
	}
}

// TestAQuestionOutsideOfATurnIsNotAsked asks for a session that has no turn in whose log the answer could be.
func TestAQuestionOutsideOfATurnIsNotAsked(t *testing.T) {
	r := start(t, "- text: x\n", composetest.Set("approval.policy=never"))
	s, err := composetest.Value[session.Store](t, r).Create(t.Context(), session.New{CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	service := composetest.Value[approval.Service](t, r)
	if got := service.Ask(t.Context(), approval.Request{SessionID: s.Header().ID, Tool: "bash"}); got != approval.Unavailable {
		t.Errorf("got %s", got)
	}
	if got := service.Ask(t.Context(), approval.Request{Tool: "bash"}); got != approval.Rejected {
		t.Errorf("outside of any session: got %s", got)
	}
}

func TestTheModelIsToldWhetherAnybodyIsAsked(t *testing.T) {
	for policy, want := range map[string]string{"ask": "Approval policy: ask.", "never": "Approval prompts are disabled in this session:"} {
		t.Run(policy, func(t *testing.T) {
			r := start(t, "- text: x\n", composetest.Set("approval.policy="+policy))
			a, err := composetest.Value[agent.Prompt](t, r).Assemble(t.Context(), agent.View{Session: session.Header{ID: "session-1", CWD: t.TempDir()}})
			if err != nil || !strings.Contains(a.Contexts, "\n\n"+want) {
				t.Errorf("got %q, %v", a.Contexts, err)
			}
		})
	}
}
