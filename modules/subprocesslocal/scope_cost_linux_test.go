package subprocesslocal_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

const costVariable = "TEST_SCOPE_COST"

// TestScopeCost measures what a scope costs a host once, and its commands each, beside a scope for each command as
// systemd-run makes one. The budget of the start is 15 ms. It fails where that is missed by far; -v shows the figures.
func TestScopeCost(t *testing.T) {
	if os.Getenv(costVariable) != "" {
		costOfAScope(t)
		return
	}
	if !in(t, testkit.World{UserManager: true}) {
		return
	}
	var starts, commands, runs []time.Duration
	for range 11 {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), costVariable+"=1")
		out, err := cmd.CombinedOutput()
		_, figures, _ := strings.Cut(string(out), "figures: ")
		words := append(strings.Fields(figures), "", "")
		start, serr := time.ParseDuration(words[0])
		command, cerr := time.ParseDuration(words[1])
		if err := errors.Join(err, serr, cerr); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		begin := time.Now()
		if out, err := exec.Command("systemd-run", "--user", "--scope", "--quiet", "bash", "-c", "true").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		starts, commands, runs = append(starts, start), append(commands, command), append(runs, time.Since(begin))
	}
	start, command, run := middle(starts), middle(commands), middle(runs)
	t.Logf("a scope: %v once, then %v for a command; systemd-run --user --scope: %v for each, %.1f times as much",
		start, command, run, float64(run)/float64(command))
	if start > 45*time.Millisecond {
		t.Errorf("making a scope takes %v", start)
	}
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// costOfAScope is a host that has made no scope before.
func costOfAScope(t *testing.T) {
	begin := time.Now()
	rt, _, _, err := startLogged(t, entering())
	took := time.Since(begin)
	if err != nil || rt.Range() != subprocess.RangeScope {
		t.Fatalf("got %v, %v", rt.Range(), err)
	}
	var commands []time.Duration
	for range 11 {
		begin := time.Now()
		<-spawn(t, rt, collected([]string{"bash", "-c", "true"})).Done()
		commands = append(commands, time.Since(begin))
	}
	fmt.Println("figures:", took, middle(commands))
}
