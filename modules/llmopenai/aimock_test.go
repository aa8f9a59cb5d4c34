package llmopenai_test

import (
	"bufio"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/llm"
	"dsh/modules/tools"
)

// aimock starts a server that others wrote, with the answers in testdata, and returns its address.
func aimock(t *testing.T) string {
	t.Helper()
	program := testkit.NeedProgram(t, "llmock") // of the npm package @copilotkit/aimock
	cmd := exec.CommandContext(t.Context(), program, "-h", "127.0.0.1", "-p", "0", "-f", "testdata/aimock.json", "--strict")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	address := make(chan string, 1)
	go func() {
		defer close(drained)
		listening := regexp.MustCompile(`listening on (http://\S+)`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
	}()
	select {
	case url := <-address:
		return url + "/v1"
	case <-drained:
		t.Fatal("llmock ended before it listened")
		return ""
	}
}

func TestAServerOfOthersIsUnderstood(t *testing.T) {
	m := start(t, config(aimock(t)))
	about := func(task string) llm.Request {
		return llm.Request{
			System: "You are a coding agent.", Messages: []llm.Message{llm.UserText(task)},
			Tools: []llm.Tool{{Name: "bash", Description: "runs a command", Parameters: &tools.Schema{Type: "object"}}},
		}
	}

	t.Run("text and reasoning", func(t *testing.T) {
		var streamed string
		pieces := 0
		r := about("say hello")
		r.Stream = func(d llm.Delta) {
			if d.Type == llm.TextBlock {
				streamed += d.Text
				pieces++
			}
		}
		got, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		const want = "Hello from a server that is not ours: é\U0001F600"
		if got.Message().Text() != want || streamed != want || pieces < 2 {
			t.Errorf("got %+v, streamed %q in %d pieces", got.Content, streamed, pieces)
		}
		if got.Content[0].Type != llm.ReasoningBlock || got.Content[0].Text != "The user wants a greeting." {
			t.Errorf("the reasoning is %+v", got.Content[0])
		}
		if got.Usage == nil || got.Finish != llm.FinishStop {
			t.Errorf("usage %v, finish %q", got.Usage, got.Finish)
		}
	})

	t.Run("tool calls and their results", func(t *testing.T) {
		r := about("list the files")
		got, err := m.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		calls := got.Message().ToolCalls()
		if len(calls) != 2 || got.Finish != llm.FinishToolCalls || calls[0].Name != "bash" ||
			calls[0].Arguments != `{"command":"ls -a","description":"List files"}` || calls[0].CallID == calls[1].CallID {
			t.Fatalf("got %+v", got)
		}
		r.Messages = append(r.Messages, got.Message(),
			llm.ToolResult(calls[0].CallID, ".\n..\n", false), llm.ToolResult(calls[1].CallID, "README\n", false))
		got, err = m.Generate(t.Context(), r)
		if err != nil || got.Message().Text() != "There is a README." {
			t.Errorf("got %+v, %v", got.Content, err)
		}
	})

	t.Run("refusals", func(t *testing.T) {
		for task, code := range map[string]string{"wrong key": llm.CodeAuth, "too long": llm.CodeContextWindow} {
			_, err := m.Generate(t.Context(), about(task))
			wantCode(t, err, code)
		}
	})

	t.Run("failures that pass", func(t *testing.T) {
		for task, want := range map[string]struct {
			text  string
			codes []string
		}{
			"too fast": {"slow enough", []string{llm.CodeRateLimit}},
			"hang up":  {"said to the end", []string{llm.CodeTransport, llm.CodeStreamClosed}},
		} {
			r := about(task)
			var told []llm.Retry
			r.Retrying = func(retry llm.Retry) error {
				told = append(told, retry)
				return nil
			}
			got, err := m.Generate(t.Context(), r)
			if err != nil || got.Message().Text() != want.text || len(told) != 1 || !slices.Contains(want.codes, told[0].Failure.Code) {
				t.Errorf("%s: got %+v, %v after %+v", task, got.Content, err, told)
			}
			if task == "too fast" && len(told) == 1 && told[0].DelayMs != 1000 {
				t.Errorf("waited %d ms, and the server asked for 1000", told[0].DelayMs)
			}
		}
	})
}
