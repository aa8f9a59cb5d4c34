package bashsandbox_test

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dsh/modules/sandbox"
	"dsh/modules/sandboxlocal"
	"dsh/modules/shell"
	"dsh/modules/subprocess"
)

const greeting = "echo hi"

// BenchmarkBwrap compares a command through the executor with the same bubblewrap line, started plainly.
func BenchmarkBwrap(b *testing.B) {
	need(b, sandboxlocal.BackendBwrap)
	r := open(b, settings{backend: sandboxlocal.BackendBwrap})
	bash, err := r.runtime.ResolveExecutable(b.Context(), "bash")
	must(b, err)
	p, err := r.policies.Resolve(b.Context(), sandbox.Session{}, "")
	must(b, err)
	c, err := r.provider.Confine(b.Context(), sandbox.Request{Policy: p, Spec: subprocess.Spec{
		Argv: []string{bash, "-c", greeting, "bash"}, Dir: r.ws,
	}})
	must(b, err)
	c.Evidence.Watch().Abandon()
	compare(b, r, func() {
		status, report, err := os.Pipe()
		must(b, err)
		cmd := exec.Command(c.Spec.Argv[0], c.Spec.Argv[1:]...)
		cmd.Dir, cmd.ExtraFiles = "/", []*os.File{report}
		out, err := cmd.Output()
		must(b, err)
		report.Close()
		if document, _ := io.ReadAll(status); string(out) != "hi\n" || len(document) == 0 {
			b.Fatalf("got %q and %q", out, document)
		}
		status.Close()
	})
}

// BenchmarkLandlock compares a command through the executor with bash -c, started plainly.
func BenchmarkLandlock(b *testing.B) {
	need(b, sandboxlocal.BackendLandlock)
	r := open(b, settings{backend: sandboxlocal.BackendLandlock})
	compare(b, r, func() {
		cmd := exec.Command("bash", "-c", greeting)
		cmd.Dir = r.ws
		if out, err := cmd.Output(); err != nil || string(out) != "hi\n" {
			b.Fatalf("got %q, %v", out, err)
		}
	})
}

// compare runs both in turns, so that what else the machine does falls on both, and reports the ratio of their medians.
func compare(b *testing.B, r *rows, plain func()) {
	b.Helper()
	chain := func() {
		s, err := r.Resolve(shell.Request{Command: greeting})
		must(b, err)
		if res, err := r.Run(b.Context(), s); err != nil || res.Stdout.Text != "hi\n" {
			b.Fatalf("got %+v, %v", res, err)
		}
	}
	chain() // the first one looks for the runner
	// The runtime adopts orphans, and the plain thing leaves some: a namespace's first process.
	orphaning := func(f func()) func() {
		return func() {
			must(b, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
			f()
			must(b, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		}
	}
	plain = orphaning(plain)
	var plains, chains []time.Duration
	timed := func(f func()) time.Duration {
		begin := time.Now()
		f()
		return time.Since(begin)
	}
	b.ReportAllocs()
	for b.Loop() {
		plains, chains = append(plains, timed(plain)), append(chains, timed(chain))
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(plains)/1e6, "plain-ms")
	b.ReportMetric(median(chains)/1e6, "chain-ms")
	b.ReportMetric(median(chains)/median(plains), "ratio")
}
