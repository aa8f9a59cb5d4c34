package headless_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/composetest"
	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/agent/agenttest"
	"dsh/modules/llm"
)

// counting asks for `true` a number of times.
type counting struct {
	tireless
	left *int
}

func (c counting) Generate(context.Context, llm.Request) (llm.Response, error) {
	if *c.left == 0 {
		return llm.Response{Content: []llm.Block{{Type: llm.TextBlock, Text: "done"}}, Finish: llm.FinishStop}, nil
	}
	*c.left--
	call := agenttest.Call(fmt.Sprintf("call-%d", *c.left), "bash", `{"command":"true","description":"test"}`)
	return llm.Response{Content: []llm.Block{call}, Finish: llm.FinishToolCalls}, nil
}

// BenchmarkTenCalls is a turn with ten commands that do nothing, beside ten plain starts of the same.
func BenchmarkTenCalls(b *testing.B) {
	bash := testkit.NeedProgram(b, "bash")
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			for range 10 {
				if err := exec.CommandContext(b.Context(), bash, "-c", "true").Run(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("turn", func(b *testing.B) {
		left := 0
		model := module.Define(module.Spec[struct{}]{
			Name: "counting", Summary: "a model for tests", Constructor: func() llm.Model { return counting{left: &left} },
		})
		r := composetest.Start(b,
			composetest.With(base.Bundle(), headless.Bundle()),
			composetest.Replace("llm", model),
			composetest.Set("session-persistence-jsonl.root='"+filepath.Join(b.TempDir(), "sessions")+"'"),
			composetest.Set("sandbox-policy.mode=danger-full-access"))
		runner, cwd := composetest.Value[agent.Runner](b, r), b.TempDir()
		for b.Loop() {
			left = 10
			if report, err := runner.Run(b.Context(), agent.Task{Text: "go", CWD: cwd}); err != nil || report.Outcome.Steps != 11 {
				b.Fatalf("got %+v, %v", report, err)
			}
		}
	})
}
