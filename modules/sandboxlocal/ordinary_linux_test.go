package sandboxlocal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dsh/internal/testkit"
)

// TestAllOfItAsAnOrdinaryUser runs every other test of the package again, as nobody.
func TestAllOfItAsAnOrdinaryUser(t *testing.T) {
	if !root() {
		t.Skip("this is the ordinary user")
	}
	dir := visibleTemp(t)
	must(t, os.Chown(dir, 65534, 65534))
	must(t, os.Chmod(dir, 0o755))
	args := []string{"-test.skip=^TestAllOfItAsAnOrdinaryUser$", "-test.timeout=5m", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	temp := filepath.Join(realTemp(t), "t")
	must(t, os.Chmod(filepath.Dir(temp), 0o755))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(temp)), 0o755))
	must(t, os.Mkdir(temp, 0o700))
	must(t, os.Chown(temp, 65534, 65534))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+temp, "DSH_HOME=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, failures(string(out)))
	}
	if n := strings.Count(string(out), "--- PASS"); n < 20 {
		t.Errorf("only %d tests passed:\n%s", n, out)
	}
	testkit.Need(t, "user namespaces for ordinary users", !strings.Contains(string(out), "No permissions to create new namespace"))
}

// failures leaves out what passed.
func failures(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
