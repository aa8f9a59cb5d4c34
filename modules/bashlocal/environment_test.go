package bashlocal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/modules/shell"
)

// run runs a command in dir and returns how it went.
func run(t *testing.T, x shell.Executor, r shell.Request) shell.Result {
	t.Helper()
	spec, err := x.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantOutput(t *testing.T, r shell.Result, code int, stdout string) {
	t.Helper()
	if r.ExitCode == nil || *r.ExitCode != code || r.Stdout.Text != stdout {
		t.Errorf("exit code %v, stdout %q, stderr %q; want %d, %q", r.ExitCode, r.Stdout.Text, r.Stderr.Text, code, stdout)
	}
}

func TestEnvironment(t *testing.T) {
	evil := filepath.Join(t.TempDir(), "evil.sh")
	if err := os.WriteFile(evil, []byte("echo EVIL; echo EVIL >&2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, rc := range []string{".bash_profile", ".bashrc", ".profile"} {
		if err := os.WriteFile(filepath.Join(home, rc), []byte("export LEAK=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name            string // what goes wrong
		host            map[string]string
		command, stdout string
	}{
		{"a file named by BASH_ENV is run", map[string]string{"BASH_ENV": evil, "ENV": evil}, "echo ok; sh -c 'echo ok'", "ok\nok\n"},
		{"a function comes from the environment", map[string]string{"BASH_FUNC_ls%%": "() { echo HIJACK; }"}, "ls -d /", "/\n"},
		{
			"bash's options come from the environment",
			map[string]string{"SHELLOPTS": "noexec:xtrace", "BASHOPTS": "expand_aliases"},
			"shopt -q expand_aliases; echo $?; [[ -o xtrace ]]; echo $?", "1\n1\n",
		},
		{"PS4 runs a command", map[string]string{"PS4": "$(echo EVIL >&2)"}, `(set -x; :) 2>&1`, "+ :\n"},
		{"a start-up file is read", map[string]string{"HOME": home}, `echo "${LEAK-none}"`, "none\n"},
		{"PATH is not the host's", map[string]string{"PATH": "/opt/curated:" + os.Getenv("PATH")}, `echo "$PATH" | cut -d: -f1`, "/opt/curated\n"},
		{
			"a program waits for a person",
			map[string]string{"TERM": "xterm", "EDITOR": "vi", "VISUAL": "vi", "GIT_EDITOR": "vi", "PAGER": "less", "GIT_PAGER": "less"},
			`echo "$NO_COLOR $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $EDITOR $VISUAL $GIT_EDITOR $GIT_SEQUENCE_EDITOR"`,
			"1 dumb cat cat 0 false false false false\n",
		},
		{"a fact comes from the host", map[string]string{"DSH_SESSION_ID": "other", "DSH_SECRET": "x"}, "env | grep '^DSH_' | grep -v '^DSH_RANGE='", ""},
		{
			"a secret reaches the command",
			map[string]string{"OPENAI_API_KEY": "canary-123", "MY_PASSPHRASE": "canary-123"},
			"(env; set; tr '\\0' '\\n' </proc/self/environ) | grep -v BASH_EXECUTION_STRING | grep -c 'canary-123'", "0\n",
		},
		{"the command line holds more than the command", nil, `tr '\0' ' ' </proc/$$/cmdline`, `bash -c tr '\0' ' ' </proc/$$/cmdline `},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.host {
				t.Setenv(name, value)
			}
			r := run(t, started(t, runtime(t), nil), shell.Request{Command: c.command, Workdir: t.TempDir()})
			if r.Stdout.Text != c.stdout || r.Stderr.Text != "" {
				t.Errorf("stdout %q, stderr %q, want %q and none", r.Stdout.Text, r.Stderr.Text, c.stdout)
			}
		})
	}
}

func TestBashOfTheWorkspaceIsRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("bash", []byte("#!/bin/sh\ntouch PWN; echo fake\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{".:", ":"} {
		t.Setenv("PATH", prefix+os.Getenv("PATH"))
		wantOutput(t, run(t, started(t, runtime(t), nil), shell.Request{Command: "echo real", Workdir: dir}), 0, "real\n")
	}
	x := started(t, runtime(t), nil)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	wantOutput(t, run(t, x, shell.Request{Command: "echo real", Workdir: dir}), 0, "real\n")
	if _, err := os.Stat("PWN"); err == nil {
		t.Error("the planted bash was run")
	}
}

func TestGitWaitsForAnEditor(t *testing.T) {
	t.Parallel()
	x := started(t, runtime(t), nil)
	const repository = "git init -q r && cd r && git config user.name a && git config user.email a@example.org && " +
		"git config core.editor \"sh -c 'sleep 4111'\" && "
	begin := time.Now()
	r := run(t, x, shell.Request{Command: repository + "git commit --allow-empty", Workdir: t.TempDir()})
	wantOutput(t, r, 1, "")
	if !strings.Contains(r.Stderr.Text, "editor") || r.TimedOut || time.Since(begin) > 20*time.Second {
		t.Errorf("after %v: timed out %v, stderr %q, want git's word on its editor", time.Since(begin), r.TimedOut, r.Stderr.Text)
	}
	r = run(t, x, shell.Request{Workdir: t.TempDir(), Command: repository +
		"for i in 1 2 3; do git commit -q --allow-empty -m c$i; done; before=$(git rev-parse HEAD); " +
		"git rebase -i HEAD~2 >&2; echo rc=$?; [ $before = $(git rev-parse HEAD) ] && git log --format=%s"})
	wantOutput(t, r, 0, "rc=1\nc3\nc2\nc1\n")
}
