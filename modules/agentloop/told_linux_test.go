package agentloop_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dsh/modules/agent/agenttest"
)

func TestInstructionsThatAreNoFilesOfTheProjectAreNotRead(t *testing.T) {
	t.Parallel()
	s := agenttest.Session(t)
	cwd := s.Header().CWD
	secret := filepath.Join(t.TempDir(), "secret")
	workspace(t, map[string]string{secret: "the key", cwd + "/blank": " \n", cwd + "/CLAUDE.local.md": strings.Repeat("x", 1<<20+1)})
	for name, target := range map[string]string{"AGENTS.md": secret, "CLAUDE.md": "blank"} {
		if err := os.Symlink(target, filepath.Join(cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(cwd, "AGENTS.local.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, agenttest.NewModel(agenttest.Say("ok")), agenttest.Registry(t), nil)
	mustTurn(t, a.Agent, s, "go")
	if got := instructions(s); len(got) > 0 {
		t.Errorf("got %.200q", got)
	}
}
