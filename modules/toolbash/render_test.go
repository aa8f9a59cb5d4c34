package toolbash_test

import (
	"context"
	"encoding/json"
	"testing"

	"dsh/modules/shell"
	"dsh/modules/tools"
)

func TestResultText(t *testing.T) {
	whole := func(text string) shell.Output { return shell.Output{Text: text, Bytes: int64(len(text))} }
	cut := func(text, spill string) shell.Output {
		return shell.Output{Text: text, Truncated: true, SpillPath: spill, Bytes: 1 << 20}
	}
	null := shell.Result{}
	timedOut := func(r shell.Result) shell.Result {
		r.TimedOut, r.TimeoutMs = true, 500
		return r
	}
	clamped := func(r shell.Result) shell.Result {
		r.TimeoutClamped, r.TimeoutMs = true, 600000
		return r
	}
	surviving := func(r shell.Result, n int) shell.Result {
		r.Survivors = n
		return r
	}
	outOfMemory := func(r shell.Result) shell.Result {
		r.OOMKilled = true
		return r
	}
	for _, c := range []struct {
		name           string
		result         shell.Result
		stdout, stderr shell.Output
		want           string
	}{
		{"the last newline is kept", exited(0), whole("hi\n"), whole(""), "hi\n"},
		{"nothing", exited(0), whole(""), whole(""), "(no output)"},
		{"nothing and a failure", exited(1), whole(""), whole(""), "(no output)\n[exit code: 1]"},
		{"both streams", exited(0), whole("a"), whole("b"), "a\n[stderr]\nb"},
		{"both streams with newlines", exited(0), whole("a\n"), whole("b\n"), "a\n[stderr]\nb\n"},
		{"stderr and a failure", exited(2), whole(""), whole("b\n"), "[stderr]\nb\n[exit code: 2]"},
		{"timed out", timedOut(killed("SIGTERM")), whole("x"), whole(""), "x\n[timed out after 500ms]\n[killed by signal: SIGTERM]"},
		{"timed out and exited 0", timedOut(exited(0)), whole("x"), whole(""), "x\n[timed out after 500ms]"},
		{"timed out and exited 7", timedOut(exited(7)), whole(""), whole(""), "(no output)\n[timed out after 500ms]\n[exit code: 7]"},
		{"killed by somebody", killed("SIGKILL"), whole("x\n"), whole(""), "x\n[killed by signal: SIGKILL]"},
		{"stdout cut", exited(0), cut("x", "/t/f.log"), whole(""), "x\n[output truncated; full output: /t/f.log]"},
		{"stdout cut after a newline", exited(0), cut("x\n", "/t/f.log"), whole(""), "x\n\n[output truncated; full output: /t/f.log]"},
		{"no whole file", exited(0), cut("x", ""), whole(""), "x\n[output truncated; full output: (unavailable)]"},
		{
			"both cut", exited(1), cut("x", "/t/out"), cut("y", "/t/err"),
			"x\n[output truncated; full output: /t/out]\n[stderr]\ny\n[output truncated; full output: /t/err]\n[exit code: 1]",
		},
		{"neither code nor signal", null, whole(""), whole(""), "(no output)\n[exit code: null]"},
		{"clamped", clamped(exited(0)), whole("x"), whole(""), "x\n[timeout reduced to 600000ms]"},
		{
			"survivors", surviving(exited(0), 2), whole("x\n"), whole(""),
			"x\n[2 process(es) of this command still running; they end with the session]",
		},
		{"out of memory", outOfMemory(killed("SIGKILL")), whole("x"), whole(""), "x\n[killed: out of memory]\n[killed by signal: SIGKILL]"},
		{
			"everything at once", surviving(timedOut(clamped(outOfMemory(killed("SIGKILL")))), 1), whole(""), whole("y"),
			"[stderr]\ny\n[timeout reduced to 500ms]\n[1 process(es) of this command still running; they end with the session]\n" +
				"[killed: out of memory]\n[timed out after 500ms]\n[killed by signal: SIGKILL]",
		},
		{"output that looks like a marker", exited(3), whole("[exit code: 0]"), whole(""), "[exit code: 0]\n[exit code: 3]"},
		{"control characters are the command's own", exited(0), whole("\x1b[31mred\x07\x00\r"), whole(""), "\x1b[31mred\x07\x00\r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.result.Stdout, c.result.Stderr = c.stdout, c.stderr
			sh := &fakeShell{run: func(context.Context, shell.Spec) (shell.Result, error) { return c.result, nil }}
			got := withShell(t, sh).Execute(t.Context(), with("x"))
			if got.Error != nil || got.Content != c.want {
				t.Fatalf("got %q, %v, want %q", got.Content, got.Error, c.want)
			}
		})
	}
}

func TestBackgroundText(t *testing.T) {
	got, err := definition(t).Render(json.RawMessage(`{"kind":"background","jobId":"bash-1"}`))
	if err != nil || got != "started background job bash-1" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func definition(t testing.TB) tools.Definition {
	t.Helper()
	ds := withShell(t, &fakeShell{}).Definitions()
	if len(ds) != 1 {
		t.Fatalf("got %d tools, want 1", len(ds))
	}
	return ds[0]
}
