//go:build unix

package subprocesstest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"dsh/modules/subprocess"
)

func (s suite) stdin(t *testing.T) {
	t.Parallel()
	rt := s.start(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, c := range []struct {
		name, command, want string
		stdin               subprocess.Stdin
	}{
		{"null device", `[ /dev/stdin -ef /dev/null ] || echo other; read -r x; echo "$?:$x"`, "1:\n", subprocess.Stdin{}},
		{"bytes", "cat; echo .", "a\x00b.\n", subprocess.Stdin{Bytes: []byte("a\x00b")}},
		{"no bytes", "cat; echo .", ".\n", subprocess.Stdin{Bytes: []byte{}}},
		{"more bytes than a pipe holds", "sha256sum", fmt.Sprintf("%x  -\n", sha256.Sum256(large)), subprocess.Stdin{Bytes: large}},
		{"bytes that are not read", "echo hi", "hi\n", subprocess.Stdin{Bytes: large}},
		{"reader", "cat; echo .", "a\x00b.\n", subprocess.Stdin{Reader: strings.NewReader("a\x00b")}},
		{"reader that is not read", "echo hi", "hi\n", subprocess.Stdin{Reader: bytes.NewReader(large)}},
		{"file", "cat; echo .", "from a file.\n", subprocess.Stdin{Reader: temporary(t, "from a file")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := bash(t, c.command)
			spec.Stdin = c.stdin
			p := spawn(t, rt, spec)
			if o := settle(t, p); o.ExitCode != 0 {
				t.Fatalf("got %+v, stderr %q", o, p.Stderr().Collected().Tail)
			}
			got := string(p.Stdout().Collected().Tail)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if p.Stdin() != nil {
				t.Error("there is a write end that was not asked for")
			}
		})
	}
	t.Run("a file is handed over itself", func(t *testing.T) {
		t.Parallel()
		f := temporary(t, "first\nrest\n")
		spec := bash(t, "read -r x; echo $x")
		spec.Stdin.Reader = f
		if got := run(t, rt, spec); got != "first\n" {
			t.Errorf("got %q", got)
		}
		// bash reads a line of a file and seeks back to its end: the offset is shared.
		if rest, err := io.ReadAll(f); err != nil || string(rest) != "rest\n" {
			t.Errorf("got the rest %q, %v, want what the command left", rest, err)
		}
	})
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, "read -r x; echo got:$x; cat; echo end")
		spec.Stdin.Pipe = true
		p := spawn(t, rt, spec)
		fmt.Fprintln(p.Stdin(), "one")
		await(t, p, 1)
		fmt.Fprintln(p.Stdin(), "two")
		if err := p.Stdin().Close(); err != nil {
			t.Error(err)
		}
		settle(t, p)
		if got := string(p.Stdout().Collected().Tail); got != "got:one\ntwo\nend\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("extra files", func(t *testing.T) {
		t.Parallel()
		spec := bash(t, "cat <&3; cat <&4; [ ! -e /dev/fd/5 ] || echo a fifth")
		spec.ExtraFiles = []*os.File{temporary(t, "three "), temporary(t, "four\n")}
		if got := run(t, rt, spec); got != "three four\n" {
			t.Errorf("got %q", got)
		}
		for _, f := range spec.ExtraFiles {
			if f.Close() == nil {
				t.Error("the file is still open in the host")
			}
		}
	})
}

// inherited exchanges the host's own streams, and so is no parallel test.
func (s suite) inherited(t *testing.T) {
	rt := s.start(t)
	out, errs := temporary(t, ""), temporary(t, "")
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = out, errs
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	spec := bash(t, "echo out; echo err >&2")
	spec.Stdout, spec.Stderr = subprocess.Output{Inherit: true}, subprocess.Output{Inherit: true}
	p := spawn(t, rt, spec)
	settle(t, p)
	for f, want := range map[*os.File]string{out: "out\n", errs: "err\n"} {
		if got, err := os.ReadFile(f.Name()); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if p.Stdout() != nil || p.Stderr() != nil || p.StdoutPipe() != nil || p.StderrPipe() != nil {
		t.Error("there is an accessor for a stream that is inherited")
	}
}
