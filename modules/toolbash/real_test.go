//go:build unix

package toolbash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/bashlocal"
	"dsh/modules/shell"
	"dsh/modules/shellenv"
	"dsh/modules/subprocess/subprocesstest"
	"dsh/modules/toolbash"
	"dsh/modules/tools"
)

// overBash is a registry with the tool over bash, process groups and shellenv.
func overBash(t testing.TB, edit func(*bashlocal.Config)) tools.Registry {
	t.Helper()
	sh, facts := parts(t, edit)
	return mounted(t, sh, facts, toolbash.DefaultConfig())
}

func parts(t testing.TB, edit func(*bashlocal.Config)) (shell.Executor, shell.Facts) {
	t.Helper()
	t.Setenv("DSH_HOME", t.TempDir())
	runtime := subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := runtime.Runner.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	config := bashlocal.DefaultConfig()
	if edit != nil {
		edit(&config)
	}
	sh, err := bashlocal.New(bashlocal.Params{Config: config, Runtime: runtime.Runtime})
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	facts, err := shellenv.New(shellenv.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return sh.Executor, facts.Facts
}

func TestRealCommands(t *testing.T) {
	r := overBash(t, func(c *bashlocal.Config) { c.MaxTimeoutMs, c.TimeoutMs = 60000, 60000 })
	session := t.TempDir()
	if err := os.Mkdir(filepath.Join(session, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	inside, err := filepath.EvalSymlinks(session)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		call tools.Execution
		want string
	}{
		{"both streams and a failure", with("echo out; echo err >&2; exit 3"), "out\n[stderr]\nerr\n[exit code: 3]"},
		{"nothing", with("true"), "(no output)"},
		{"grep without a match", with("grep -q no_such_word /dev/null"), "(no output)\n[exit code: 1]"},
		{"a signal", with("kill -KILL $$"), "(no output)\n[killed by signal: SIGKILL]"},
		{"standard input is empty", with("read -r x; echo got:$x; readlink /proc/self/fd/0 || echo /dev/null"), "got:\n/dev/null\n"},
		{"the directory", with("pwd -P", "workdir", "nowhere/../sub"), filepath.Join(inside, "sub") + "\n"},
		{"the managed variables", with(`echo "$DSH_SHELL $DSH_SESSION_ID"`), "1 session-1\n"},
		{"a NUL in the output", with(`printf 'a\0b\n'`), "a\x00b\n"},
		{"a timeout over the cap", with("sleep 0.01; echo done", "timeoutMs", 99999999999), "done\n[timeout reduced to 60000ms]"},
		{"a timeout", with("echo x; exec sleep 4171", "timeoutMs", 700), "x\n[timed out after 700ms]\n[killed by signal: SIGTERM]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.call.Session = &tools.SessionRef{ID: "session-1", CWD: session}
			got := r.Execute(t.Context(), c.call)
			if got.Error != nil || got.Content != c.want {
				t.Fatalf("got %q, %v, want %q", got.Content, got.Error, c.want)
			}
		})
	}
}

func TestRealProgressIsTheOutput(t *testing.T) {
	r := overBash(t, nil)
	var mu sync.Mutex
	seen := map[string]string{}
	e := with("cat; echo err >&2")
	e.Stdin = strings.NewReader("from stdin\n")
	e.Progress = func(stream string, p []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen[stream] += string(p)
	}
	got := r.Execute(t.Context(), e)
	if got.Error != nil || got.Content != "from stdin\n[stderr]\nerr\n" {
		t.Fatalf("got %q, %v", got.Content, got.Error)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["stdout"] != "from stdin\n" || seen["stderr"] != "err\n" {
		t.Fatalf("got progress %q", seen)
	}
}

func TestRealCancelledCommandIsGoneWhenTheCallReturns(t *testing.T) {
	r := overBash(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := filepath.Join(t.TempDir(), "pid")
	e := with("echo $$ > " + pid + ".tmp && mv " + pid + ".tmp " + pid + "; exec sleep 4172")
	results := make(chan tools.Result, 1)
	go func() { results <- r.Execute(ctx, e) }()
	var number []byte
	testkit.Eventually(t, 20*time.Second, "the command runs", func() bool {
		var err error
		number, err = os.ReadFile(pid)
		return err == nil
	})
	cancel()
	wantError(t, <-results, tools.CodeAborted, "tool call aborted")
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(number))); err == nil {
		t.Fatal("the command is still there")
	}
}

func TestRealLongOutputNamesTheWholeFile(t *testing.T) {
	got := overBash(t, nil).Execute(t.Context(), with("head -c 250000 /dev/zero | tr '\\0' x; echo END-MARKER"))
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	var value shell.Result
	if err := json.Unmarshal(got.Value, &value); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(value.Stdout.SpillPath)
	if err != nil || len(whole) != 250011 || value.Stdout.Bytes != 250011 || !value.Stdout.Truncated {
		t.Fatalf("got a file of %d bytes, %v; bytes %d, truncated %v", len(whole), err, value.Stdout.Bytes, value.Stdout.Truncated)
	}
	if want := "END-MARKER\n\n[output truncated; full output: " + value.Stdout.SpillPath + "]"; !strings.HasSuffix(got.Content, want) {
		t.Fatalf("got the end %q, want %q", got.Content[len(got.Content)-200:], want)
	}
}

func TestRealDirectoryThatGoesAfterTheLook(t *testing.T) {
	sh, facts := parts(t, nil)
	dir := filepath.Join(t.TempDir(), "brief")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	undo, err := facts.Register(shell.Contributor{
		Name:      "remover",
		Variables: []shell.Variable{{Key: "DSH_REMOVED", Description: "what was removed"}},
		Resolve: func(context.Context, shell.Execution) (map[string]string, error) {
			return map[string]string{"DSH_REMOVED": dir}, os.Remove(dir)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer undo()
	got := mounted(t, sh, facts, toolbash.DefaultConfig()).Execute(t.Context(), with("true", "workdir", dir))
	wantError(t, got, tools.CodeWorkdir, fmt.Sprintf("working directory %q does not exist", dir))
}
