package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dsh/modules/subprocess"
)

// Evidence tells a refusal and a broken runner from an ordinary failure.
type Evidence struct {
	// Denials are texts that the backend's refusals put on stderr, in any case.
	Denials []string
	// Ambiguous says that other refusals read like Denials.
	Ambiguous bool
	// Runner is the program that confines, when there is one: that it cannot be executed is its failure.
	Runner string
	// Signatures are texts, in any case, of lines on stderr with which a runner fails; for runners that have no Status.
	Signatures []string
	// Status, if not nil, is asked once the process has settled, and reports whether the command was executed and ended by
	// itself.
	Status func() bool
	// Underway, if not nil, reports whether the runner has made the sandbox, after which it hardly fails. A caller that does
	// not wait for the command's end asks until it says so or the process has settled.
	Underway func() bool
	// Failed, if not nil, tells the provider that its runner failed before the command was executed. It reports whether
	// confining the same command again may work.
	Failed func(ctx context.Context, reason string) (again bool)
	// Release, if not nil, gives back what the evidence holds. It may be called more than once.
	Release func()
}

// Verdict is what the end of a confined process means.
type Verdict struct {
	Denied       bool
	DeniedBy     string // see Facts
	RunnerFailed bool   // the command was not executed
	Reason       string // the runner's own words
}

// RunnerRefused returns the reason if err, from spawning the process, is the runner's or the sandbox's own failure.
func (e *Evidence) RunnerRefused(err error) (reason string, ok bool) {
	var unavailable *UnavailableError
	var program *subprocess.ExecutableError
	var invalid *subprocess.InvalidError
	switch {
	case errors.As(err, &unavailable):
		return unavailable.Reason, true
	case errors.As(err, &program) && e.Runner != "" && program.Name == e.Runner:
		return program.Error(), true
	case errors.As(err, &invalid) && invalid.Field == "onThread":
		return invalid.Error(), true
	}
	return "", false
}

// Watch begins to look at what the process writes to stderr. The Watch, not the caller, releases the evidence.
func (e *Evidence) Watch() *Watch {
	w := &Watch{evidence: e}
	for _, d := range e.Denials {
		if d = strings.ToLower(strings.TrimSpace(d)); d != "" {
			w.denials = append(w.denials, []byte(d))
			w.overlap = max(w.overlap, len(d)-1)
		}
	}
	return w
}

// Watch looks at one process. Its methods may be called concurrently.
type Watch struct {
	evidence *Evidence
	denials  [][]byte
	overlap  int

	mu     sync.Mutex
	head   []byte // the beginning of stderr: a runner that fails says why before anything else is said
	carry  []byte // the end of what has been looked at, for texts that two pieces share
	denied bool
	line   []byte // the present line, up to maxHead
	failed string // the first line that carries a signature
}

const maxHead = 4096

// Stderr looks at the next piece of the stream.
func (w *Watch) Stderr(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := min(len(p), maxHead-len(w.head)); n > 0 {
		w.head = append(w.head, p[:n]...)
	}
	w.lookForDenial(p)
	if len(w.evidence.Signatures) > 0 {
		w.lookForFailure(p)
	}
}

func (w *Watch) lookForDenial(p []byte) {
	if w.denied || len(w.denials) == 0 {
		return
	}
	text := bytes.ToLower(append(w.carry, p...))
	w.denied = slices.ContainsFunc(w.denials, func(d []byte) bool { return bytes.Contains(text, d) })
	w.carry = append(w.carry[:0:0], text[max(0, len(text)-w.overlap):]...)
}

func (w *Watch) lookForFailure(p []byte) {
	for len(p) > 0 && w.failed == "" {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		w.line = append(w.line, line[:min(len(line), maxHead-len(w.line))]...)
		if p = rest; ended {
			w.endLine()
		}
	}
}

func (w *Watch) endLine() {
	text := strings.ToLower(string(w.line))
	for _, s := range w.evidence.Signatures {
		if s = strings.ToLower(strings.TrimSpace(s)); s != "" && strings.Contains(text, s) && w.failed == "" {
			w.failed = strings.TrimSpace(string(w.line))
		}
	}
	w.line = w.line[:0]
}

// End returns what the process's end means, and releases the evidence. ended says that the caller ended the process, which
// is then nobody's failure.
func (w *Watch) End(o subprocess.Outcome, ended bool) Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.evidence
	executed := e.Status == nil || e.Status()
	w.release()
	failed := o.Signal == "" && o.ExitCode != 0
	switch {
	case !failed:
		return Verdict{}
	case !executed && !ended:
		return Verdict{RunnerFailed: true, Reason: w.reason(o)}
	}
	if w.endLine(); w.failed != "" && !ended {
		return Verdict{RunnerFailed: true, Reason: w.failed}
	}
	v := Verdict{Denied: w.denied}
	if v.Denied && e.Ambiguous {
		v.DeniedBy = "text"
	}
	return v
}

// Abandon releases the evidence of a process that was not spawned, or whose end could not be learned.
func (w *Watch) Abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

func (w *Watch) release() {
	if w.evidence.Release != nil {
		w.evidence.Release()
	}
}

// reason returns the first line that the runner wrote.
func (w *Watch) reason(o subprocess.Outcome) string {
	for line := range strings.Lines(strings.ToValidUTF8(string(w.head), "\uFFFD")) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return fmt.Sprintf("the runner exited with status %d and said nothing", o.ExitCode)
}
