package bashlocal_test

import (
	"log/slog"
	"os/exec"
	"slices"
	"testing"
	"time"

	"dsh/modules/shell"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
)

// BenchmarkRun reports, as "ratio", the median time of a command through the executor by that of plain os/exec, the two
// taken in turn. The whole chain from a tool call down may cost 1.35.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name    string
		runtime func(testing.TB) subprocess.Runtime
	}{
		{"subprocesslocal", runtime},
		{"plain", func(testing.TB) subprocess.Runtime {
			return subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)}).Runtime
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := started(b, c.runtime(b), nil)
			dir := b.TempDir()
			bash, err := exec.LookPath("bash")
			if err != nil {
				b.Fatal(err)
			}
			var plain, ours []time.Duration
			for b.Loop() {
				begin := time.Now()
				cmd := exec.CommandContext(b.Context(), bash, "-c", "echo hi")
				cmd.Dir = dir
				if out, err := cmd.Output(); err != nil || string(out) != "hi\n" {
					b.Fatalf("plain: %q, %v", out, err)
				}
				between := time.Now()
				spec, err := x.Resolve(shell.Request{Command: "echo hi", Workdir: dir})
				if err != nil {
					b.Fatal(err)
				}
				if r, err := x.Run(b.Context(), spec); err != nil || r.Stdout.Text != "hi\n" {
					b.Fatalf("%q, %v", r.Stdout.Text, err)
				}
				plain, ours = append(plain, between.Sub(begin)), append(ours, time.Since(between))
			}
			b.ReportMetric(float64(median(ours))/float64(median(plain)), "ratio")
			b.ReportMetric(float64(median(plain).Microseconds()), "plain-µs")
			b.ReportMetric(float64(median(ours).Microseconds()), "ours-µs")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
