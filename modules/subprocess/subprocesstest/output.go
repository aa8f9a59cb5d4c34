//go:build unix

package subprocesstest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/subprocess"
)

func (s suite) output(t *testing.T) {
	t.Parallel()
	rt := s.start(t)
	parallel := func(name string, f func(*testing.T, subprocess.Runtime)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, rt)
		})
	}
	parallel("pipes", pipes)
	parallel("tail and file", tails)
	parallel("a file that is outgrown", outgrown)
	parallel("offsets", offsets)
	parallel("tee", tee)
	parallel("a stuck tee", stuckTee)
	parallel("the end is not lost", ends)
	parallel("endless", endless)
}

func pipes(t *testing.T, rt subprocess.Runtime) {
	spec := bash(t, "echo out; echo err >&2")
	spec.Stdout, spec.Stderr = subprocess.Output{Pipe: true}, subprocess.Output{Pipe: true}
	p := spawn(t, rt, spec)
	settle(t, p) // does not wait for who reads
	for _, c := range []struct {
		pipe io.ReadCloser
		want string
	}{{p.StdoutPipe(), "out\n"}, {p.StderrPipe(), "err\n"}} {
		if got, err := io.ReadAll(c.pipe); err != nil || string(got) != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
		if err := c.pipe.Close(); err != nil {
			t.Error(err)
		}
	}
	if p.Stdout() != nil || p.Stderr() != nil {
		t.Error("a stream is collected that was not to be")
	}
}

// tails has the lengths at which off by one shows.
func tails(t *testing.T, rt subprocess.Runtime) {
	for _, n := range []int{0, 1, 63999, 64000, 64001, 250011} {
		spec := bash(t, fmt.Sprintf("head -c %d < <(seq 1 100000) >&2; echo -n", n))
		p := spawn(t, rt, spec)
		settle(t, p)
		got := p.Stderr().Collected()
		whole := numbers(n)
		want := whole[max(0, n-64000):]
		if got.Total != int64(n) || !bytes.Equal(got.Tail, want) {
			t.Errorf("%d bytes: got %d, of which %d kept, want the last %d", n, got.Total, len(got.Tail), len(want))
		}
		if got.Truncated != (n > 64000) {
			t.Errorf("%d bytes: truncated is %v", n, got.Truncated)
		}
		if n <= 64000 {
			if got.SpillPath != "" {
				t.Errorf("%d bytes: there is a file %s, which nobody needs", n, got.SpillPath)
			}
			continue
		}
		file, err := os.ReadFile(got.SpillPath)
		if err != nil || !bytes.Equal(file, whole) {
			t.Errorf("%d bytes: the file has %d, %v, want the whole stream", n, len(file), err)
		}
		if info, err := os.Stat(got.SpillPath); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v, %v, want it for this user alone", info.Mode(), err)
		}
	}
}

// numbers returns the first n bytes of what seq prints.
func numbers(n int) []byte {
	var b bytes.Buffer
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.Bytes()[:n]
}

func outgrown(t *testing.T, rt subprocess.Runtime) {
	spec := bash(t, "seq 1 5000; read -r x; seq 1 5000")
	spec.Stdin.Pipe = true
	spec.Stdout.Collect = &subprocess.Collect{MaxBytes: 1000, SpillMaxBytes: 30000}
	p := spawn(t, rt, spec)
	var path string
	testkit.Eventually(t, patience, "a file with the first part", func() bool {
		c := p.Stdout().Collected()
		path = c.SpillPath
		return c.Total == 23893 && path != ""
	})
	p.Stdin().Close()
	settle(t, p)
	if got := p.Stdout().Collected(); got.SpillPath != "" || !got.Truncated || len(got.Tail) != 1000 || got.Total != 2*23893 {
		t.Errorf("got %d bytes of %d and the file %q, want the tail alone", len(got.Tail), got.Total, got.SpillPath)
	}
	if exists(path) {
		t.Error("the outgrown file was not removed")
	}

	spec = bash(t, "seq 1 5000")
	spec.Stdout.Collect = &subprocess.Collect{MaxBytes: 1000}
	p = spawn(t, rt, spec)
	settle(t, p)
	if got := p.Stdout().Collected(); got.SpillPath != "" || len(got.Tail) != 1000 {
		t.Errorf("got %d bytes and the file %q although there was to be none", len(got.Tail), got.SpillPath)
	}
}

func offsets(t *testing.T, rt subprocess.Runtime) {
	spec := bash(t, `echo one; read -r x; echo two; read -r x; seq 1 100`)
	spec.Stdin.Pipe = true
	spec.Stdout.Collect = &subprocess.Collect{MaxBytes: 100}
	p := spawn(t, rt, spec)
	read := func(offset int64, want string, next int64, lossy bool) {
		t.Helper()
		got, n, l := p.Stdout().ReadAt(offset)
		if string(got) != want || n != next || l != lossy {
			t.Errorf("from %d: got %q, %d, %v, want %q, %d, %v", offset, got, n, l, want, next, lossy)
		}
	}
	await(t, p, 1)
	read(0, "one\n", 4, false)
	read(2, "e\n", 4, false)
	read(4, "", 4, false)
	fmt.Fprintln(p.Stdin())
	await(t, p, 2)
	read(4, "two\n", 8, false)
	read(0, "one\ntwo\n", 8, false) // another reader, at its own place
	p.Stdin().Close()
	settle(t, p)
	whole := "one\ntwo\n" + string(numbers(292))
	read(8, whole[200:], 300, true)
	read(199, whole[200:], 300, true)
	read(200, whole[200:], 300, false)
	read(298, whole[298:], 300, false)
	read(300, "", 300, false)

	mine, _, _ := p.Stdout().ReadAt(200)
	clear(mine)
	read(200, whole[200:], 300, false)
	tail := p.Stdout().Collected().Tail
	clear(tail)
	if got := string(p.Stdout().Collected().Tail); got != whole[200:] {
		t.Error("a caller's copy is not its own")
	}
}

func tee(t *testing.T, rt subprocess.Runtime) {
	var got bytes.Buffer // without a lock: the race detector sees to it that one goroutine calls at a time
	var inside atomic.Int32
	spec := bash(t, "seq 1 100000")
	spec.Stdout.Collect.Tee = func(p []byte) {
		if inside.Add(1) > 1 {
			t.Error("the tee is called while it is called")
		}
		got.Write(p)
		inside.Add(-1)
	}
	p := spawn(t, rt, spec)
	settle(t, p)
	if want := numbers(588895); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the pieces make %d bytes, which are not the stream of %d", got.Len(), len(want))
	}
}

func stuckTee(t *testing.T, rt subprocess.Runtime) {
	release := make(chan struct{})
	spec := bash(t, "echo one; echo two")
	spec.Grace = 300 * time.Millisecond
	spec.Stdout.Collect.Tee = func([]byte) { <-release }
	begin := time.Now()
	p := spawn(t, rt, spec)
	defer close(release)
	settle(t, p)
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("settled after %v, for a grace of %v", took, spec.Grace)
	}
}

// ends runs many commands whose last line is written right before their exit.
func ends(t *testing.T, rt subprocess.Runtime) {
	spec := bash(t, "echo out; echo E >&2; echo last")
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 12 {
				p, err := rt.Spawn(t.Context(), spec)
				if err != nil {
					t.Error(err)
					return
				}
				o, err := p.Outcome()
				out, errs := string(p.Stdout().Collected().Tail), string(p.Stderr().Collected().Tail)
				if err != nil || o != (subprocess.Outcome{}) || out != "out\nlast\n" || errs != "E\n" {
					t.Errorf("got %+v, %v, stdout %q, stderr %q", o, err, out, errs)
				}
			}
		})
	}
	group.Wait()
}

func endless(t *testing.T, rt subprocess.Runtime) {
	spec := bash(t, "yes")
	spec.Stdout.Collect = &subprocess.Collect{MaxBytes: 10, SpillMaxBytes: 1 << 20}
	p := spawn(t, rt, spec)
	testkit.Eventually(t, patience, "16 MiB of output", func() bool { return p.Stdout().Collected().Total > 16<<20 })
	p.Terminate()
	settle(t, p)
	got := p.Stdout().Collected()
	if !strings.Contains("y\ny\ny\ny\ny\ny\n", string(got.Tail)) || len(got.Tail) != 10 || got.SpillPath != "" {
		t.Errorf("got the tail %q and the file %q", got.Tail, got.SpillPath)
	}
}
