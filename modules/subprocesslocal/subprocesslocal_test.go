//go:build unix

package subprocesslocal_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/module"
	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

func TestModule(t *testing.T) {
	m := subprocesslocal.Module()
	if m.Name() != "subprocess-local" || len(m.Provides()) != 1 || m.Provides()[0] != subprocess.Key.Type() || len(m.Needs()) != 0 {
		t.Errorf("%s provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
	if m.Supports("win32") || !m.Supports("linux") {
		t.Errorf("it runs on %v", m.Platforms())
	}
}

func TestConfig(t *testing.T) {
	if err := subprocesslocal.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	err := subprocesslocal.Config{KeepEnv: []string{"OK", "", "A=B", "dsh_x"}, SpillKeepDays: -1}.Validate()
	for _, key := range []string{"keepEnv[1]", "keepEnv[2]", "keepEnv[3]", "spillKeepDays"} {
		if !strings.Contains(err.Error(), key+" ") {
			t.Errorf("got %v, want %s in it", err, key)
		}
	}
	if _, ok := errors.AsType[*module.FieldError](err); !ok {
		t.Errorf("got %T", err)
	}
}

func TestKeptAndWithheld(t *testing.T) {
	t.Setenv("GIT_TOKEN", "kept")
	t.Setenv("OTHER_TOKEN", "scrubbed")
	rt := startWith(t, subprocesslocal.Config{KeepEnv: []string{"GIT_TOKEN"}, Range: "auto"})
	see := func() string {
		p := spawn(t, rt, collected([]string{"bash", "-c", "echo $GIT_TOKEN,$OTHER_TOKEN"}))
		<-p.Done()
		return string(p.Stdout().Collected().Tail)
	}
	if got := see(); got != "kept,\n" {
		t.Errorf("got %q", got)
	}
	rt.Withhold("GIT_TOKEN")
	if got := see(); got != ",\n" {
		t.Errorf("withheld: got %q", got)
	}
}

func TestACommandMakesNoFiles(t *testing.T) {
	rt := start(t)
	<-spawn(t, rt, collected([]string{"true"})).Done()
	if entries, err := os.ReadDir(os.Getenv("DSH_HOME")); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v in the home", entries, err)
	}
}

func TestNotStarted(t *testing.T) {
	rt, _ := newRuntime(t)
	if _, err := rt.Spawn(t.Context(), collected([]string{"true"})); err == nil {
		t.Error("a row that has not started spawned")
	}
}

// TestStopKeepsItsBudget has a command whose grace is far longer than the row may take to stop.
func TestStopKeepsItsBudget(t *testing.T) {
	rt, runner := newRuntime(t)
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := collected([]string{"bash", "-c", `trap "" TERM; echo ready; while :; do sleep 0.05; done`})
	s.Grace = time.Hour
	p := spawn(t, rt, s)
	testkit.Eventually(t, 20*time.Second, "the trap is set", func() bool { return p.Stdout().Collected().Total > 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	if err := runner.Stop(ctx); err != nil {
		t.Error(err)
	}
	if o, err := p.Outcome(); o.Signal != "SIGKILL" || err != nil {
		t.Errorf("got %+v, %v", o, err)
	}
}
