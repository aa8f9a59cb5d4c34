package subprocesslocal

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCookieDuringExec reads the environment of a process that is given new programs all the time.
func TestCookieDuringExec(t *testing.T) {
	const cookie = "0123456789abcdef:0123456789abcdef"
	for name, padding := range map[string]int{"short": 0, "pages": 10000} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", `exec sh -c "$0" "$0"`, `exec sh -c "$0" "$0"`)
			cmd.Env = []string{"PADDING=" + strings.Repeat("x", padding), cookieName + "=" + cookie}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			known, unknown := 0, 0
			for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
				got, ok := cookieOf(cmd.Process.Pid, strconv.Itoa(cmd.Process.Pid))
				if !ok {
					unknown++
					continue
				}
				known++
				if got != cookie {
					t.Fatalf("got %q after %d right answers", got, known-1)
				}
			}
			t.Logf("%d known, %d unknown", known, unknown)
			if known == 0 {
				t.Error("got no answer")
			}
		})
	}
}
