//go:build unix

package subprocesslocal_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

// BenchmarkSpawn compares a command with one that os/exec starts and reads, taking turns. The budget of a group is a ratio
// of 1.15, that of a cgroup 1.25.
func BenchmarkSpawn(b *testing.B) {
	for _, kind := range []string{"group", "auto"} {
		b.Run(kind, func(b *testing.B) {
			config := subprocesslocal.DefaultConfig()
			config.Range = kind
			benchmarkSpawn(b, startWith(b, config))
		})
	}
}

func benchmarkSpawn(b *testing.B, rt subprocess.Runtime) {
	argv := []string{"bash", "-c", "echo hi"}
	compare(b, func() {
		p := spawn(b, rt, collected(argv))
		if o, err := p.Outcome(); err != nil || o.ExitCode != 0 {
			b.Fatal(o, err)
		}
	}, func() {
		if out, err := exec.Command(argv[0], argv[1:]...).Output(); err != nil || len(out) != 3 {
			b.Fatal(out, err)
		}
	})
}

// BenchmarkStop stops a host with a thousand live commands, each in a cgroup. The budget is two seconds.
func BenchmarkStop(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		rt, runner := newRuntime(b)
		if err := runner.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if kind := rt.Range(); kind != subprocess.RangeCgroup {
			b.Skipf("this benchmark needs a writable cgroup; ranges are of the kind %s", kind)
		}
		for range 1000 {
			spawn(b, rt, collected([]string{"sleep", "4314"}))
		}
		begin := time.Now()
		if err := runner.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "stop-ms")
}

// BenchmarkStart starts and stops a host that runs nothing, which every run of dsh pays.
func BenchmarkStart(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		_, runner := newRuntime(b)
		begin := time.Now()
		if err := runner.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if err := runner.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "start-µs")
}

// BenchmarkOutput compares collecting a gibibyte with a plain reader of the same pipe, taking turns. The budget is a
// ratio of 1.25, which is 0.8 of the speed. The file is written up to its limit, and then given up.
func BenchmarkOutput(b *testing.B) {
	b.Run("tail", func(b *testing.B) { benchmarkOutput(b, 0) })
	b.Run("file of 64 MiB", func(b *testing.B) { benchmarkOutput(b, 64<<20) })
}

func benchmarkOutput(b *testing.B, spill int64) {
	const size = 1 << 30
	rt := start(b)
	argv := []string{"head", "-c", "1073741824", "/dev/zero"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.SetBytes(size)
	compare(b, func() {
		s := collected(argv)
		s.Stdout.Collect.SpillMaxBytes = spill
		p := spawn(b, rt, s)
		p.Outcome()
		if got := p.Stdout().Collected(); got.Total != size || len(got.Tail) != 64000 {
			b.Fatalf("got %d bytes and kept %d", got.Total, len(got.Tail))
		}
	}, func() {
		cmd := exec.Command(argv[0], argv[1:]...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(struct{ io.Writer }{io.Discard}, out)
		if err != nil || n != size {
			b.Fatal(n, err)
		}
		cmd.Wait()
	})
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB-grown")
}

// compare reports the median of ours over that of theirs.
func compare(b *testing.B, ours, theirs func()) {
	var a, z []time.Duration
	timed := func(f func()) time.Duration {
		t := time.Now()
		f()
		return time.Since(t)
	}
	b.ReportAllocs()
	for b.Loop() {
		a = append(a, timed(ours))
		z = append(z, timed(theirs))
	}
	slices.Sort(a)
	slices.Sort(z)
	ma, mz := a[len(a)/2], z[len(z)/2]
	b.ReportMetric(float64(ma)/float64(mz), "ratio")
	b.ReportMetric(float64(ma.Microseconds()), "ours-µs")
	b.ReportMetric(float64(mz.Microseconds()), "plain-µs")
}

func start(tb testing.TB) subprocess.Runtime {
	tb.Helper()
	return startWith(tb, subprocesslocal.DefaultConfig())
}

func startWith(tb testing.TB, config subprocesslocal.Config) subprocess.Runtime {
	tb.Helper()
	tb.Setenv("DSH_HOME", tb.TempDir())
	res, err := subprocesslocal.New(subprocesslocal.Params{
		Config: config, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := res.Runner.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := res.Runner.Stop(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return res.Runtime
}

func collected(argv []string) subprocess.Spec {
	collect := func() subprocess.Output { return subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 64000}} }
	return subprocess.Spec{Argv: argv, Dir: "/", Grace: 3 * time.Second, Stdout: collect(), Stderr: collect()}
}

func spawn(tb testing.TB, rt subprocess.Runtime, s subprocess.Spec) subprocess.Process {
	tb.Helper()
	p, err := rt.Spawn(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
