package bashaudit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/bundles/base"
	"dsh/composetest"
	"dsh/modules/shell"
	"dsh/modules/shell/shelltest"
	"dsh/modules/subprocess/subprocesstest"

	"example.com/custom-module/bashaudit"
)

// TestMain fails the package when a test leaves a goroutine or a process behind.
func TestMain(m *testing.M) { composetest.Main(m) }

// audited is the composition with bash-audit in place of the shell of the bundle.
func audited(t testing.TB) (options []composetest.Option, file string) {
	file = filepath.Join(t.TempDir(), "audit.jsonl")
	return []composetest.Option{
		composetest.With(base.Bundle(), bashaudit.Bundle()),
		composetest.Patch("- {id: bash-sandbox, disabled: true}\n- {id: bash-audit, disabled: false}"),
		composetest.Set("bash-audit.file=" + file),
	}, file
}

// start runs it.
func start(t testing.TB, more ...composetest.Option) (executor shell.Executor, file string) {
	t.Helper()
	options, file := audited(t)
	return composetest.Value[shell.Executor](t, composetest.Start(t, append(options, more...)...)), file
}

// TestItKeepsTheContract runs the suite that every executor passes.
func TestItKeepsTheContract(t *testing.T) {
	shelltest.Run(t, func(t testing.TB) shell.Executor {
		executor, _ := start(t)
		return executor
	}, shelltest.Options{})
}

// TestItKeepsTheContractOverAnotherRuntime swaps what starts the processes.
func TestItKeepsTheContractOverAnotherRuntime(t *testing.T) {
	shelltest.Run(t, func(t testing.TB) shell.Executor {
		executor, _ := start(t, composetest.Replace("subprocess", subprocesstest.Module()))
		return executor
	}, shelltest.Options{})
}

func TestEachCommandIsOnRecord(t *testing.T) {
	executor, file := start(t)
	spec, err := executor.Resolve(shell.Request{Command: "exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := executor.Run(t.Context(), spec); err != nil || r.ExitCode == nil || *r.ExitCode != 3 {
		t.Errorf("got %+v, %v", r, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"command":"exit 3"`) {
		t.Errorf("the record: %q, %v", text, err)
	}
}

func TestWhatCannotBeRecordedIsNotRun(t *testing.T) {
	executor, file := start(t)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spec, err := executor.Resolve(shell.Request{Command: "touch ran", Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := executor.Run(t.Context(), spec); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it was run")
	}
}

// TestTheBundleIsAlsoOneFxApp mounts the rows as a program with an fx app of its own does.
func TestTheBundleIsAlsoOneFxApp(t *testing.T) {
	options, _ := audited(t)
	composetest.PlainFx(t, options...)
}
