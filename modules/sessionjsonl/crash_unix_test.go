//go:build unix

package sessionjsonl_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dsh/modules/session"
)

// TestHostThatIsKilled is also the host: it runs this binary once more, which appends until it is killed.
func TestHostThatIsKilled(t *testing.T) {
	if root := os.Getenv("DSH_TEST_HOST_ROOT"); root != "" {
		open := create(t, start(t, root).Store, "/", &session.TurnStart{Turn: 1})
		for step := 1; ; step++ {
			add(t, open, &session.StepStart{Turn: 1, Step: step}, &session.StepEnd{Turn: 1, Step: step})
			fmt.Println(open.Header().ID, len(open.Events()))
		}
	}
	root := t.TempDir()
	host := exec.Command(os.Args[0], "-test.run=^TestHostThatIsKilled$")
	host.Env = append(os.Environ(), "DSH_TEST_HOST_ROOT="+root)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var id string
	var said int
	lines := bufio.NewScanner(out)
	for said < 101 && lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &id, &said); err != nil {
			t.Errorf("the host says %q", lines.Text())
			break
		}
	}
	s := start(t, root).Store
	if _, err := s.Open(t.Context(), id); !errors.Is(err, session.ErrLocked) {
		t.Errorf("Open while the host lives: %v", err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it had said by then
		if strings.HasPrefix(lines.Text(), id) {
			_, _ = fmt.Sscan(lines.Text(), &id, &said)
		}
	}
	_ = host.Wait()
	open, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(open.Events()) - open.Recovery().Closed; kept < said {
		t.Errorf("%d events are kept of %d", kept, said)
	}
	if p := open.Position(); p.Turn != 0 || p.Turns != 1 {
		t.Errorf("the position is %+v", p)
	}
}
