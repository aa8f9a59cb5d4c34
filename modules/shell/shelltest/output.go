package shelltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"dsh/modules/shell"
)

// outputChecks are about the output of foreground commands.
var outputChecks = []check{
	{"bytes are changed or lost", func(s *suite) {
		for command, want := range map[string]struct {
			text  string
			bytes int64
		}{
			`printf foo`:                 {"foo", 3},
			`printf 'a\0b\n'`:            {"a\x00b\n", 4},
			`printf 'a\r\nb\r\n'`:        {"a\r\nb\r\n", 6},
			`printf '10%%\r50%%\rdone'`:  {"10%\r50%\rdone", 12},
			`printf '\377\376abc\n'`:     {"\ufffd\ufffdabc\n", 6},
			`printf '\033[31mred\033[m'`: {"\x1b[31mred\x1b[m", 11},
			`printf '你好'`:                {"你好", 6},
			`for i in $(seq 200); do printf 'L%03d %0200d\n' $i 0; done`: {lines(200), 41_200},
		} {
			r := s.runs(shell.Request{Command: command, StdoutMaxBytes: 64_000})
			s.wantText(command, r.Stdout.Text, want.text)
			if r.Stdout.Bytes != want.bytes || r.Stdout.Truncated || r.Stdout.SpillPath != "" {
				s.Errorf("%s: %d bytes, truncated %v, spill path %q", command, r.Stdout.Bytes, r.Stdout.Truncated, r.Stdout.SpillPath)
			}
			s.wantText("stderr of "+command, r.Stderr.Text, "")
			if _, err := json.Marshal(r); err != nil {
				s.Errorf("%s: %v", command, err)
			}
		}
	}},
	{"the end of a long output is lost", func(s *suite) {
		whole := strings.Repeat("x", 250_000) + "END-MARKER\n"
		r := s.runs(shell.Request{Command: `head -c 250000 /dev/zero | tr '\0' x; echo END-MARKER`, StdoutMaxBytes: 1000})
		s.wantText("stdout", r.Stdout.Text, whole[len(whole)-1000:])
		if !r.Stdout.Truncated || r.Stdout.Bytes != int64(len(whole)) {
			s.Errorf("truncated %v, %d bytes, want true, %d", r.Stdout.Truncated, r.Stdout.Bytes, len(whole))
		}
		s.wantSpill(r.Stdout.SpillPath, []byte(whole))
	}},
	{"the budget is off by one", func(s *suite) {
		for n, truncated := range map[int]bool{63_999: false, 64_000: false, 64_001: true} {
			command := fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, n)
			r := s.runs(shell.Request{Command: command, StdoutMaxBytes: 64_000})
			if r.Stdout.Truncated != truncated || len(r.Stdout.Text) != min(n, 64_000) || r.Stdout.Bytes != int64(n) {
				s.Errorf("%d bytes: kept %d, truncated %v, bytes %d", n, len(r.Stdout.Text), r.Stdout.Truncated, r.Stdout.Bytes)
			}
			if !truncated && r.Stdout.SpillPath != "" {
				s.Errorf("%d bytes: spilled to %s", n, r.Stdout.SpillPath)
			}
			s.wantSpill(r.Stdout.SpillPath, bytes.Repeat([]byte("x"), n))
		}
	}},
	{"the kept end begins inside a character", func(s *suite) {
		for kept := int64(1000); kept < 1004; kept++ {
			r := s.runs(shell.Request{Command: `yes 🙂 | head -n 5000 | tr -d '\n'`, StdoutMaxBytes: kept})
			text := r.Stdout.Text
			if !utf8.ValidString(text) || strings.Trim(text, "🙂") != "" {
				s.Errorf("of %d bytes: %q is not made of whole characters", kept, abbreviated(text))
			}
			if n := int64(len(text)); n > kept || n <= kept-4 || !r.Stdout.Truncated || r.Stdout.Bytes != 20_000 {
				s.Errorf("of %d bytes: kept %d, truncated %v, bytes %d", kept, n, r.Stdout.Truncated, r.Stdout.Bytes)
			}
			s.wantSpill(r.Stdout.SpillPath, []byte(strings.Repeat("🙂", 5000)))
		}
	}},
	{"streams are mixed or cut under load", func(s *suite) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 6 {
					r, err := s.Run(s.Context(), s.resolve(shell.Request{Command: "echo out; echo E >&2; echo last"}))
					if err != nil {
						s.Error(err)
						return
					}
					s.wantExit(r, 0)
					s.wantText("stdout", r.Stdout.Text, "out\nlast\n")
					s.wantText("stderr", r.Stderr.Text, "E\n")
				}
			})
		}
		wg.Wait()
	}},
	{"progress is not the output", func(s *suite) {
		var mu sync.Mutex
		seen := map[shell.Stream]string{}
		r := s.runs(shell.Request{
			Command: "seq 5000; seq 3000 >&2", StdoutMaxBytes: 64_000,
			Progress: func(stream shell.Stream, p []byte) {
				mu.Lock()
				defer mu.Unlock()
				seen[stream] += string(p)
			},
		})
		mu.Lock()
		defer mu.Unlock()
		s.wantText("progress of stdout", seen[shell.Stdout], r.Stdout.Text)
		s.wantText("progress of stderr", seen[shell.Stderr], r.Stderr.Text)
		if r.Stdout.Bytes != 23_893 || r.Stderr.Bytes != 13_893 {
			s.Errorf("%d and %d bytes, want 23893 and 13893", r.Stdout.Bytes, r.Stderr.Bytes)
		}
	}},
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "L%03d %0200d\n", i+1, 0)
	}
	return b.String()
}
