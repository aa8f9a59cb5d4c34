package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
	"dsh/modules/subprocess/subprocesstest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// defect is a promise that a fake breaks; empty: none.
type defect string

const (
	passesThrough   defect = "confines nothing"
	ignoresMode     defect = "opens the workspace in every mode"
	opensNothing    defect = "opens the workspace in no mode"
	losesArguments  defect = "hands on a line instead of arguments"
	losesStdin      defect = "keeps the input"
	losesDir        defect = "starts elsewhere"
	writesEnv       defect = "writes into the caller's environment"
	writesFiles     defect = "writes into the caller's list of files"
	shiftsFiles     defect = "puts its own descriptor first"
	takesDanger     defect = "takes full access for a confinement"
	takesAnyMode    defect = "takes a mode that is none"
	ignoresContext  defect = "prepares for a caller that has gone"
	blamesRunner    defect = "takes a missing directory for the runner's fault"
	neverDenied     defect = "never says denied"
	alwaysDenied    defect = "says denied of every failure"
	leaks           defect = "leaves descriptors behind"
	claimsFull      defect = "names no backend"
	hidesReason     defect = "does not say why a backend is not usable"
	plainErrors     defect = "refuses with an error of its own"
	remembersPolicy defect = "gives every command the first one's policy"
)

// fake confines with a handful of bubblewrap's options.
type fake struct {
	broken defect
	bwrap  string
	first  atomic.Pointer[sandbox.Policy]
}

func (f *fake) Backends(context.Context) []sandbox.Backend {
	all := []sandbox.Backend{
		{Name: "simple", Usable: true, Chosen: true, Enforcement: sandbox.Full},
		{Name: "other", Reason: "it is not made yet"},
	}
	if f.broken == hidesReason {
		all[1].Reason = ""
	}
	return all
}

func (f *fake) Confine(ctx context.Context, r sandbox.Request) (*sandbox.Confined, error) {
	if ctx.Err() != nil && f.broken != ignoresContext {
		return nil, context.Cause(ctx)
	}
	p := r.Policy
	if f.broken == remembersPolicy {
		f.first.CompareAndSwap(nil, &p)
		p = *f.first.Load()
	}
	err := p.Validate()
	if p.Mode == sandbox.DangerFullAccess && f.broken != takesDanger {
		err = errors.New("no confinement")
	}
	if err != nil && (f.broken != takesAnyMode || p.WorkspaceRoot == "") {
		if f.broken == plainErrors {
			return nil, err
		}
		return nil, &sandbox.UnavailableError{Mode: p.Mode, Reason: err.Error()}
	}
	s := r.Spec
	if _, err := os.Stat(s.Dir); err != nil && f.broken != blamesRunner {
		return nil, &subprocess.DirError{Dir: s.Dir, Err: err}
	}
	var status, report *os.File
	if status, report, err = os.Pipe(); err != nil {
		return nil, err
	}
	files := s.ExtraFiles
	fd := 3 + len(files)
	switch f.broken {
	case writesFiles:
		files = append(files, report)
	case shiftsFiles:
		files, fd = append([]*os.File{report}, files...), 3
	default:
		files = append(files[:len(files):len(files)], report)
	}
	s.ExtraFiles = files
	args := []string{f.bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--json-status-fd", fmt.Sprint(fd)}
	if (p.Mode != sandbox.ReadOnly || f.broken == ignoresMode) && f.broken != opensNothing {
		args = append(args, "--bind", p.WorkspaceRoot, p.WorkspaceRoot)
	}
	dir := s.Dir
	if f.broken == losesDir {
		dir = "/"
	}
	args = append(args, "--chdir", dir, "--")
	if f.broken == passesThrough {
		args = nil
		s.ExtraFiles = files[:len(files)-1]
		report.Close()
	} else {
		s.Dir = "/"
	}
	argv := s.Argv
	if f.broken == losesArguments {
		argv = append(argv[:3:3], strings.Fields(strings.Join(argv[3:], " "))...)
	}
	s.Argv = append(args, argv...)
	if f.broken == writesEnv && s.Env.Set != nil {
		s.Env.Set["TMPDIR"] = "/tmp"
	}
	if f.broken == losesStdin {
		s.Stdin = subprocess.Stdin{}
	}
	return &sandbox.Confined{Spec: s, Backend: f.name(), Enforcement: sandbox.Full, Evidence: f.evidence(status, report)}, nil
}

func (f *fake) name() string {
	if f.broken == claimsFull {
		return ""
	}
	return "simple"
}

func (f *fake) evidence(status, report *os.File) sandbox.Evidence {
	e := sandbox.Evidence{
		Denials: []string{"Read-only file system"}, Runner: f.bwrap,
		Release: func() {
			status.Close()
			report.Close()
		},
		Status: func() bool {
			if f.broken == passesThrough {
				return true
			}
			_ = status.SetReadDeadline(time.Now().Add(time.Second))
			var all []byte
			for buf := make([]byte, 4096); ; {
				n, err := status.Read(buf)
				all = append(all, buf[:n]...)
				if err != nil || strings.Contains(string(all), "exit-code") {
					return strings.Contains(string(all), "exit-code")
				}
			}
		},
	}
	switch f.broken {
	case neverDenied:
		e.Denials = nil
	case alwaysDenied:
		e.Denials = []string{"o"}
	case leaks:
		e.Release = func() {}
	case blamesRunner:
		e.Status = func() bool { return false }
	}
	return e
}

func open(t testing.TB, broken defect) Bench {
	r := subprocesstest.NewPlain(subprocesstest.PlainParams{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = r.Runner.Stop(context.Background()) })
	return Bench{Provider: &fake{broken: broken, bwrap: testkit.NeedProgram(t, "bwrap")}, Runtime: r.Runtime}
}

func TestSuitePassesAProviderThatKeepsThePromises(t *testing.T) {
	Run(t, func(t testing.TB) Bench { return open(t, "") })
}

func TestSuiteNoticesABrokenProvider(t *testing.T) {
	for _, broken := range []defect{
		passesThrough, ignoresMode, opensNothing, losesArguments, losesStdin, losesDir, writesEnv, writesFiles, shiftsFiles,
		takesDanger, takesAnyMode, ignoresContext, blamesRunner, neverDenied, alwaysDenied, leaks, claimsFull, hidesReason,
		plainErrors, remembersPolicy,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			for _, c := range providerChecks() {
				if len(testkit.Faults(t, func(tb testing.TB) { c.check(&bench{TB: tb, Bench: open(t, broken)}) })) > 0 {
					return
				}
			}
			t.Errorf("no check noticed a provider that %s", broken)
		})
	}
}
