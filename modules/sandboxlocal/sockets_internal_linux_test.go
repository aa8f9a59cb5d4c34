package sandboxlocal

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"dsh/internal/testkit"
)

func TestWhoHasASocketAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		network string
		ended   bool
		want    bool
	}{
		"stream":          {"unix", false, true},
		"packets":         {"unixpacket", false, true},
		"datagrams":       {"unixgram", false, true},
		"an ended stream": {"unix", true, false},
	} {
		path := filepath.Join(dir, name)
		if c.network == "unixgram" {
			s, err := net.ListenUnixgram(c.network, &net.UnixAddr{Name: path, Net: c.network})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
		} else {
			l, err := net.ListenUnix(c.network, &net.UnixAddr{Name: path, Net: c.network})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			defer l.Close()
			if c.ended {
				l.Close()
			}
		}
		// A command that another test starts meanwhile has a copy of the socket until it is executed.
		testkit.Eventually(t, 10*time.Second, fmt.Sprintf("%s: answers is %v", name, c.want), func() bool { return answers(path) == c.want })
	}
	if answers(filepath.Join(dir, "nothing")) {
		t.Error("what is not there answers")
	}
}
