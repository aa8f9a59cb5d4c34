package shelltest

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

var resolveChecks = []check{
	{"a bare request is not filled in", func(s *suite) {
		spec, err := s.Resolve(shell.Request{Command: "true"})
		if err != nil {
			s.Fatal(err)
		}
		if spec.Timeout <= 0 || spec.StdoutMaxBytes <= 0 || !filepath.IsAbs(spec.Workdir) || spec.TimeoutClamped {
			s.Errorf("resolved to %+v", spec)
		}
		own := shell.Request{
			Command: "true", Workdir: s.dir(), Timeout: pointer(1234 * time.Millisecond), StdoutMaxBytes: 77,
			Env: map[string]string{"A": "1"}, Facts: map[string]string{"DSH_B": "2"}, Stdin: strings.NewReader("x"),
		}
		got := s.resolve(own)
		if got.Command != own.Command || got.Workdir != own.Workdir || got.Timeout != *own.Timeout ||
			got.StdoutMaxBytes != 77 || got.Env["A"] != "1" || got.Facts["DSH_B"] != "2" || got.Stdin != own.Stdin {
			s.Errorf("%+v resolved to %+v", own, got)
		}
	}},
	{"a huge timeout expires at once", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "sleep 0.2; echo done", Timeout: pointer(time.Duration(math.MaxInt64))})
		if !spec.TimeoutClamped {
			s.Errorf("a timeout of 292 years resolved to %v without being clamped", spec.Timeout)
		}
		r := s.runSpec(s.Context(), spec)
		s.wantUnended(r)
		s.wantText("stdout", r.Stdout.Text, "done\n")
		if !r.TimeoutClamped || r.TimeoutMs != spec.Timeout.Milliseconds() {
			s.Errorf("timeoutClamped %v, timeoutMs %d, want true, %d", r.TimeoutClamped, r.TimeoutMs, spec.Timeout.Milliseconds())
		}
	}},
	{"a timeout that is not positive is taken for none", func(s *suite) {
		for _, d := range []time.Duration{0, -time.Millisecond, -5 * time.Second, math.MinInt64} {
			_, err := s.Resolve(shell.Request{Command: "true", Workdir: s.dir(), Timeout: &d})
			want := "invalid timeoutMs: expected a positive integer, got " + strconv.FormatInt(d.Milliseconds(), 10)
			if _, ok := errors.AsType[*shell.InvalidError](err); !ok || err.Error() != want {
				s.Errorf("%v: error %v, want %s", d, err, want)
			}
		}
	}},
	{"a request that cannot work is resolved", func(s *suite) {
		for field, r := range map[string]shell.Request{
			"workdir":        {Command: "true", Workdir: "relative/dir"},
			"stdoutMaxBytes": {Command: "true", Workdir: s.dir(), StdoutMaxBytes: -1},
			"command":        {Command: "echo a\x00b", Workdir: s.dir()},
		} {
			_, err := s.Resolve(r)
			if invalid, ok := errors.AsType[*shell.InvalidError](err); !ok || invalid.Field != field {
				s.Errorf("%+v: error %v, want an *InvalidError for %s", r, err, field)
			}
		}
	}},
	{"a command is cut at a NUL byte", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "touch marker"})
		spec.Command += "\x00; true"
		s.refuses(spec, "an *InvalidError for command", func(err error) bool {
			invalid, ok := errors.AsType[*shell.InvalidError](err)
			return ok && invalid.Field == "command"
		})
	}},
	{"a command of megabytes fails without its name", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "touch marker"})
		spec.Command += " # " + strings.Repeat("x", 8<<20)
		tooLong := func(err error) bool {
			return errors.Is(err, shell.ErrCommandTooLong) && strings.Contains(err.Error(), strconv.Itoa(len(spec.Command)))
		}
		if _, err := s.Resolve(shell.Request{Command: spec.Command, Workdir: spec.Workdir}); !tooLong(err) {
			s.Errorf("Resolve: error %v, want ErrCommandTooLong with the length", err)
		}
		s.refuses(spec, "ErrCommandTooLong with the length", tooLong)
	}},
	{"a bad working directory is blamed on the shell", func(s *suite) {
		dir := s.dir()
		s.create(filepath.Join(dir, "file"))
		for _, bad := range []string{"missing", "file"} {
			spec := s.resolve(shell.Request{Command: "touch marker", Workdir: filepath.Join(dir, bad)})
			s.refuses(spec, "a *subprocess.DirError with the directory", func(err error) bool {
				e, ok := errors.AsType[*subprocess.DirError](err)
				return ok && e.Dir == spec.Workdir
			})
		}
	}},
	{"Run applies defaults or caps of its own", func(s *suite) {
		spec := s.resolve(shell.Request{Command: "printf 0123456789abcdef", Timeout: pointer(time.Duration(math.MaxInt64))})
		spec.TimeoutClamped = false
		spec.Timeout += time.Hour // over the cap
		spec.StdoutMaxBytes = 6
		r := s.runSpec(s.Context(), spec)
		s.wantText("stdout", r.Stdout.Text, "abcdef")
		if r.TimeoutMs != spec.Timeout.Milliseconds() || r.TimeoutClamped {
			s.Errorf("timeoutMs %d, clamped %v, want the Spec's %d", r.TimeoutMs, r.TimeoutClamped, spec.Timeout.Milliseconds())
		}
	}},
	{"a command runs elsewhere", func(s *suite) {
		base := s.dir()
		for _, name := range []string{"plain", "o d'q\"$(touch PWN)\n日本", "link"} {
			dir := filepath.Join(base, name)
			var err error
			if name == "link" {
				err = os.Symlink(filepath.Join(base, "plain"), dir)
			} else {
				err = os.Mkdir(dir, 0o777)
			}
			if err != nil {
				s.Fatal(err)
			}
			r := s.runs(shell.Request{Command: `touch here; ls; [ "$PWD" -ef . ] && [ "$(/bin/pwd)" -ef . ]`, Workdir: dir})
			s.wantExit(r, 0)
			s.wantText("ls", r.Stdout.Text, "here\n")
			if !s.exists(filepath.Join(dir, "here")) {
				s.Errorf("nothing was written to %q", dir)
			}
		}
	}},
}

// refuses checks that neither Run nor Start takes spec, whose command would make the file marker.
func (s *suite) refuses(spec shell.Spec, want string, ok func(error) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if _, err := s.Run(ctx, spec); !ok(err) {
		s.Errorf("Run: error %v, want %s", err, want)
	}
	if p, err := s.Start(ctx, spec); !ok(err) {
		s.Errorf("Start: error %v, want %s", err, want)
		if err == nil {
			s.settles(p)
		}
	}
	if _, err := os.Stat(filepath.Join(spec.Workdir, "marker")); err == nil {
		s.Error("the command was run")
	}
}
