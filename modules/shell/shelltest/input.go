package shelltest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dsh/modules/shell"
)

// inputChecks are about what a command is given: its text, stdin, variables.
var inputChecks = []check{
	{"a command waits for input that nobody gives", func(s *suite) {
		r := s.runs(shell.Request{Command: `read -r x; echo "got:$x <a@example.org>"; [ /dev/stdin -ef /dev/null ]`})
		s.wantExit(r, 0)
		s.wantText("stdout", r.Stdout.Text, "got: <a@example.org>\n")
	}},
	{"stdin does not arrive", func(s *suite) {
		r := s.runs(shell.Request{Command: "wc -c", Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
		s.wantText("stdout", strings.TrimSpace(r.Stdout.Text), "1048576")

		path := filepath.Join(s.TempDir(), "input")
		if err := os.WriteFile(path, []byte("from a file\n"), 0o600); err != nil {
			s.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			s.Fatal(err)
		}
		defer f.Close()
		r = s.runs(shell.Request{Command: "cat", Stdin: f})
		s.wantText("stdout", r.Stdout.Text, "from a file\n")
	}},
	{"stdin that is not read is a failure", func(s *suite) {
		r := s.runs(shell.Request{Command: "head -c 5", Stdin: endless{}})
		s.wantExit(r, 0)
		s.wantText("stdout", r.Stdout.Text, "xxxxx")
	}},
	{"stdin that never ends holds the command", func(s *suite) {
		reader, writer := io.Pipe()
		defer time.AfterFunc(patience, func() { writer.Close() }).Stop() // rather than hang with the executor
		defer writer.Close()
		begin := time.Now()
		r := s.runs(shell.Request{Command: "echo hi", Stdin: reader})
		s.wantExit(r, 0)
		s.wantUnended(r)
		if took := time.Since(begin); took >= patience {
			s.Errorf("took %v", took)
		}
	}},
	{"a variable is lost or overruled", func(s *suite) {
		r := s.runs(shell.Request{
			Command: `echo "$TERM|$MINE|$DSH_FACT|$QUOTED"`,
			Env:     map[string]string{"TERM": "mine", "MINE": "1", "DSH_FACT": "env", "QUOTED": "a 'b' \"c\"\n$d"},
			Facts:   map[string]string{"DSH_FACT": "fact"},
		})
		s.wantText("stdout", r.Stdout.Text, "mine|1|fact|a 'b' \"c\"\n$d\n")
	}},
	{"the shell is a login shell or an interactive one", func(s *suite) {
		r := s.runs(shell.Request{Command: "alias ls='echo HIJACK'\nls -d /; shopt -q login_shell; echo $?; shopt -q expand_aliases; echo $?\n" +
			"[[ -o monitor ]]; echo $?; case $- in *i*) echo int;; *) echo non;; esac; echo $0 $#"})
		s.wantText("stdout", r.Stdout.Text, "/\n1\n1\n1\nnon\nbash 0\n")
		s.wantText("stderr", r.Stderr.Text, "")
	}},
	{"a command is not taken as bash -c takes it", func(s *suite) {
		for command, want := range map[string]struct {
			stdout, stderr string
			code           int
		}{
			"cat <<'MY-END'\nit's $HOME {a} `b`\nMY-END\ntrue | true; { echo brace; }; echo $$ | grep -c '^[0-9]'": {
				stdout: "it's $HOME {a} `b`\nbrace\n1\n",
			},
			"echo hi # note":           {stdout: "hi\n"},
			`echo hi \`:                {stdout: "hi \\\n"},
			"echo hi; sleep 0 &":       {stdout: "hi\n"},
			"echo 'open":               {stderr: "bash: -c: line 1: unexpected EOF", code: 2},
			"no_such_program_here":     {stderr: "bash: line 1: no_such_program_here: command not found", code: 127},
			"\n\nno_such_program_here": {stderr: "bash: line 3: no_such_program_here: command not found", code: 127},
			"":                         {},
			"yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}": {stdout: "141\n"},
			// Signals 32 and 33 are the C library's own; whoever is started by make has them ignored.
			"grep -E '^Sig(Ign|Blk)' /proc/self/status | sed -E 's/[01][08](.{7})$/00\\1/' | sort || :": {stdout: "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"},
		} {
			if strings.Contains(command, "/proc/") && !s.exists("/proc/self/status") {
				continue
			}
			r := s.runs(shell.Request{Command: command})
			s.wantExit(r, want.code)
			s.wantText("stdout of "+command, r.Stdout.Text, want.stdout)
			// Versions of bash word these differently further on, and a distribution may add lines.
			if !strings.HasPrefix(r.Stderr.Text, want.stderr) || (want.stderr == "" && r.Stderr.Text != "") {
				s.Errorf("stderr of %q is %q, want it to begin with %q", command, r.Stderr.Text, want.stderr)
			}
		}
	}},
	{"a here-document without an end is an error", func(s *suite) {
		r := s.runs(shell.Request{Command: "cat <<E\nbody"})
		s.wantExit(r, 0)
		s.wantText("stdout", r.Stdout.Text, "body\n")
		if !strings.HasPrefix(r.Stderr.Text, "bash: ") || !strings.Contains(r.Stderr.Text, "delimited by end-of-file") {
			s.Errorf("stderr %q, want bash's warning", r.Stderr.Text)
		}
	}},
	{"a command longer than one argument is run differently", func(s *suite) {
		xs := func(n int) string { return strings.Repeat("x", n) }
		rest := `; read -r line; echo "$0 $# [$line]"; no_such_program_here`
		for command, out := range map[string]string{
			`: "` + xs(131_071-4-len(rest)-1) + `"` + rest:                  "",
			`: "` + xs(131_072-4-len(rest)-1) + `"` + rest:                  "",
			`: "` + xs(200_000) + `"` + rest:                                "",
			`: "` + strings.Repeat("你", 100_000) + `"` + rest:               "",
			"cat <<'E'\n" + xs(200_000) + "\nE\n" + strings.Trim(rest, ";"): xs(200_000) + "\n",
		} {
			spec, err := s.Resolve(shell.Request{Command: command, Workdir: s.dir(), StdoutMaxBytes: 1 << 20})
			if errors.Is(err, shell.ErrCommandTooLong) {
				continue
			} else if err != nil {
				s.Fatalf("%d bytes: %v", len(command), err)
			}
			r := s.runSpec(s.Context(), spec)
			s.wantExit(r, 127)
			s.wantText("stdout", r.Stdout.Text, out+"bash 0 []\n")
			if !strings.Contains(r.Stderr.Text, ": no_such_program_here: command not found") || !strings.HasPrefix(r.Stderr.Text, "bash: line ") {
				s.Errorf("%d bytes: stderr %q", len(command), abbreviated(r.Stderr.Text))
			}
		}
	}},
	{"a command reaches the terminal", func(s *suite) {
		r := s.runs(shell.Request{Command: `read -r x </dev/tty && echo "tty:$x"`})
		s.wantExit(r, 1)
		s.wantText("stdout", r.Stdout.Text, "")
	}},
}

// endless is a stream without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
