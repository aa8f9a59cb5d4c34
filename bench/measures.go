package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/compose"
	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
	"dsh/modules/tools"
)

var measures = []measure{
	{name: "one command, unconfined, over bash -c", budget: 1.35, unit: "x", run: chain("sandbox-policy.mode=danger-full-access")},
	{name: "one command under Landlock over bash -c", budget: 1.45, unit: "x", run: chain("sandbox.backend=landlock")},
	{name: "one command under bwrap over the same bwrap line", budget: 1.15, unit: "x", run: chainUnderBwrap},
	{name: "dsh exec, unconfined, over bash -c", budget: 25, unit: "ms", run: start},
	{name: "dsh exec under bwrap over the same bwrap line", budget: 25, unit: "ms", run: startUnderBwrap},
	{name: "dsh config check", budget: 60, unit: "ms", run: check},
	{name: "a plan of 50 rows with 20 expressions", budget: 15, unit: "ms", run: plan},
	{name: "a plan of 1,000 such rows, over 20 of 50", budget: 1.25, unit: "x", run: largePlan},
	{name: "a command in a process group, over os/exec", budget: 1.15, unit: "x", run: spawn(subprocess.RangeGroup)},
	{name: "a command in a cgroup, over os/exec", budget: 1.25, unit: "x", run: spawn(subprocess.RangeCgroup)},
	{name: "1 GiB of output, pipe speed", budget: 0.8, unit: "x", least: true, run: output},
	{name: "1 GiB of output, memory over idle", budget: 10, unit: "MiB", run: memory},
	{name: "a turn of ten calls over ten of the same bwrap line", budget: 30, unit: "ms", run: tenCalls},
	{name: "dsh TASK with one call over the same bwrap line", budget: 45, unit: "ms", run: task},
	{name: "memory of dsh TASK, resident", budget: 60, unit: "MiB", run: taskMemory},
}

// bench holds what measures share: the program, and a directory that is also the workspace.
type bench struct {
	dir     string
	program string
}

func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "dsh-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, program: filepath.Join(dir, "dsh")}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) prepare() error {
	build := exec.Command("go", "build", "-o", b.program, "dsh/cmd/dsh")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	// What the commands spill belongs to this run, and their workspace is not the project's.
	workspace := filepath.Join(b.dir, "workspace")
	return errors.Join(os.Setenv("DSH_HOME", filepath.Join(b.dir, "home")), os.Mkdir(workspace, 0o700), os.Chdir(workspace))
}

func (b *bench) close() error { return os.RemoveAll(b.dir) }

// host is a running composition.
type host struct {
	*compose.Running
	tools tools.Registry
}

// compose runs the base bundle with settings as for --set.
func (b *bench) compose(sets ...string) (*host, error) {
	return composeOf([]module.Bundle{base.Bundle()}, compose.Inputs{Sets: sets})
}

func composeOf(bundles []module.Bundle, in compose.Inputs) (*host, error) {
	registry, err := module.NewRegistry(bundles...)
	if err != nil {
		return nil, err
	}
	machine, err := compose.ThisMachine()
	if err != nil {
		return nil, err
	}
	in.Bundles = bundles
	layers := compose.Load(in)
	plan, err := compose.MakePlan(layers, registry, machine, compose.FoldOptions{})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	running, err := compose.Apply(context.Background(), plan, compose.RunOptions{Log: log})
	if err != nil {
		return nil, err
	}
	h := &host{Running: running}
	var ok bool
	if h.tools, ok = compose.Value[tools.Registry](running); !ok {
		return nil, errors.Join(errors.New("no row provides tools"), running.Stop())
	}
	return h, nil
}

// call runs command through the tool, and returns how long it took.
func (h *host) call(command string) (time.Duration, error) {
	arguments, err := json.Marshal(map[string]any{"command": command, "description": "measure"})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	r := h.tools.Execute(context.Background(), tools.Execution{CallID: "bench", Name: "bash", Arguments: arguments})
	took := time.Since(began)
	if r.Error != nil {
		return 0, r.Error
	}
	return took, nil
}

// plain runs argv as a Go program would, its output read into nothing through a pipe, and returns how long it took.
func plain(argv ...string) (time.Duration, error) {
	return read(exec.Command(argv[0], argv[1:]...))
}

func read(cmd *exec.Cmd) (time.Duration, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, out, make([]byte, 64<<10)); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// paired runs two things in turn, n times each after a warm-up, and returns the medians and the median of the ratios.
func paired(n int, ours, plain func() (time.Duration, error)) (ourMedian, plainMedian, ratio float64, err error) {
	var a, b, r []float64
	for i := range n + 1 {
		x, err := ours()
		if err != nil {
			return 0, 0, 0, err
		}
		y, err := plain()
		if err != nil {
			return 0, 0, 0, err
		}
		if i > 0 {
			a, b, r = append(a, x.Seconds()), append(b, y.Seconds()), append(r, x.Seconds()/y.Seconds())
		}
	}
	return median(a), median(b), median(r), nil
}

func ms(seconds float64) string { return fmt.Sprintf("%.2f ms", 1000*seconds) }

const greeting = "echo hi"

func bash() (time.Duration, error) { return plain("bash", "-c", greeting) }

// chain compares a command through the whole chain with bash -c.
func chain(sets ...string) func(*bench) (figure, error) {
	return func(b *bench) (f figure, err error) {
		h, err := b.compose(sets...)
		if err != nil {
			return figure{}, err
		}
		defer func() { err = errors.Join(err, h.Stop()) }()
		ours, theirs, ratio, err := paired(150, func() (time.Duration, error) { return h.call(greeting) }, bash)
		return figure{ratio, ms(ours), ms(theirs)}, err
	}
}

// chainUnderBwrap compares a command through the whole chain with the bwrap line that it is confined by, started plainly.
func chainUnderBwrap(b *bench) (f figure, err error) {
	h, err := b.compose("sandbox.backend=bwrap")
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.Join(err, h.Stop()) }()
	line, err := h.bwrap(greeting)
	if err != nil {
		return figure{}, err
	}
	ours, theirs, ratio, err := paired(100, func() (time.Duration, error) { return h.call(greeting) }, line)
	return figure{ratio, ms(ours), ms(theirs)}, err
}

// start compares the program with bash -c.
func start(b *bench) (figure, error) {
	ours, theirs, _, err := paired(40,
		func() (time.Duration, error) {
			return plain(b.program, "exec", "--mode", "danger-full-access", greeting)
		}, bash)
	return figure{1000 * (ours - theirs), ms(ours), ms(theirs)}, err
}

// startUnderBwrap compares the program with the bwrap line that it starts.
func startUnderBwrap(b *bench) (figure, error) { return b.overBwrap("exec", greeting) }

// overBwrap compares the program with these arguments, which run greeting, with the bwrap line of that command.
func (b *bench) overBwrap(args ...string) (f figure, err error) {
	h, err := b.compose("sandbox.backend=bwrap")
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.Join(err, h.Stop()) }()
	line, err := h.bwrap(greeting)
	if err != nil {
		return figure{}, err
	}
	argv := append([]string{b.program}, args...)
	ours, theirs, _, err := paired(40, func() (time.Duration, error) { return plain(argv...) }, line)
	return figure{1000 * (ours - theirs), ms(ours), ms(theirs)}, err
}

// bwrap returns a function that runs command under the line that h would confine it by, and says how long it took.
func (h *host) bwrap(command string) (func() (time.Duration, error), error) {
	ctx := context.Background()
	provider, ok := compose.Value[sandbox.Provider](h.Running)
	policies, found := compose.Value[sandbox.Policies](h.Running)
	if !ok || !found {
		return nil, errors.New("no row provides the sandbox")
	}
	policy, err := policies.Resolve(ctx, sandbox.Session{}, "")
	if err != nil {
		return nil, err
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	confined, err := provider.Confine(ctx, sandbox.Request{Policy: policy, Spec: subprocess.Spec{
		Argv: []string{shell, "-c", command, "bash"}, Dir: policy.WorkspaceRoot,
	}})
	if err != nil {
		return nil, err
	}
	confined.Evidence.Watch().Abandon()
	argv := confined.Spec.Argv
	return func() (took time.Duration, err error) {
		// The namespace's first process outlives bwrap for a moment. A row of h adopts orphans; this one is not its own.
		if err := adoptOrphans(false); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, adoptOrphans(true)) }()
		// The line reports to descriptor 3.
		sink, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		defer sink.Close()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.ExtraFiles = "/", []*os.File{sink}
		return read(cmd)
	}, nil
}

// script writes a model's part in which it asks for a command calls times and then says a word, and that all over again.
func (b *bench) script(command string, calls, turns int) (file string, err error) {
	var all strings.Builder
	for range turns {
		for range calls {
			fmt.Fprintf(&all, "- tools: [{name: bash, arguments: {command: %q, description: measure}}]\n", command)
		}
		all.WriteString("- text: done\n")
	}
	file = filepath.Join(b.dir, "script.yaml")
	return file, os.WriteFile(file, []byte(all.String()), 0o600)
}

// tenCalls compares a turn of the agent that calls the tool ten times with ten plain starts of the bwrap line.
func tenCalls(b *bench) (f figure, err error) {
	const rounds = 11
	file, err := b.script("true", 10, rounds+1)
	if err != nil {
		return figure{}, err
	}
	swap := filepath.Join(b.dir, "script.patch.yaml")
	if err := os.WriteFile(swap, []byte("- {id: llm, disabled: true}\n- {id: llm-script, disabled: false}\n"), 0o600); err != nil {
		return figure{}, err
	}
	h, err := composeOf([]module.Bundle{base.Bundle(), headless.Bundle()}, compose.Inputs{
		Patches: []string{swap}, Sets: []string{"sandbox.backend=bwrap", "llm-script.file='" + file + "'"},
	})
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.Join(err, h.Stop()) }()
	runner, ok := compose.Value[agent.Runner](h.Running)
	if !ok {
		return figure{}, errors.New("no row provides the agent's runner")
	}
	line, err := h.bwrap("true")
	if err != nil {
		return figure{}, err
	}
	ours, theirs, _, err := paired(rounds,
		func() (time.Duration, error) {
			began := time.Now()
			report, err := runner.Run(context.Background(), agent.Task{Text: "measure"})
			if err == nil && report.Outcome.Steps != 11 {
				err = fmt.Errorf("the turn took %d steps: %+v", report.Outcome.Steps, report.Outcome.Reason)
			}
			return time.Since(began), err
		},
		func() (all time.Duration, err error) {
			for range 10 {
				took, err := line()
				if err != nil {
					return 0, err
				}
				all += took
			}
			return all, nil
		})
	return figure{1000 * (ours - theirs), ms(ours), ms(theirs)}, err
}

// task compares the program with one call of the tool in its turn with the bwrap line of the call.
func task(b *bench) (figure, error) {
	file, err := b.script(greeting, 1, 1)
	if err != nil {
		return figure{}, err
	}
	return b.overBwrap("--model", "script:"+file, "measure")
}

func taskMemory(b *bench) (figure, error) {
	file, err := b.script("sleep 0.3", 3, 1)
	if err != nil {
		return figure{}, err
	}
	peak, err := b.peak("--model", "script:"+file, "measure")
	return figure{peak, mib(peak), "-"}, err
}

const gibibyte = "head -c 1073741824 /dev/zero"

func output(b *bench) (f figure, err error) {
	h, err := b.compose("sandbox-policy.mode=danger-full-access")
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.Join(err, h.Stop()) }()
	ours, theirs, ratio, err := paired(5,
		func() (time.Duration, error) { return h.call(gibibyte) },
		func() (time.Duration, error) { return plain("bash", "-c", gibibyte) })
	speed := func(seconds float64) string { return fmt.Sprintf("%.2f GiB/s", 1/seconds) }
	return figure{1 / ratio, speed(ours), speed(theirs)}, err
}

func memory(b *bench) (figure, error) {
	idle, err := b.peak("exec", "--json", "sleep 0.5")
	if err != nil {
		return figure{}, err
	}
	busy, err := b.peak("exec", "--json", gibibyte)
	return figure{busy - idle, mib(busy), mib(idle)}, err
}

func mib(v float64) string { return fmt.Sprintf("%.1f MiB", v) }

// peak returns the peak resident memory of the program with arguments, in MiB: the median of five. It is read from the
// running process (VmHWM, proc_pid_status(5)), since what wait4(2) says includes the memory of the process that forked.
func (b *bench) peak(args ...string) (float64, error) {
	var peaks []float64
	for range 5 {
		cmd := exec.Command(b.program, args...)
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		tick := time.NewTicker(5 * time.Millisecond)
		peak := 0.0
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					return 0, err
				}
				running = false
			case <-tick.C:
				peak = max(peak, highWater(cmd.Process.Pid))
			}
		}
		tick.Stop()
		peaks = append(peaks, peak)
	}
	return median(peaks), nil
}

// highWater returns a process's peak resident memory so far in MiB, or 0 when it cannot be read.
func highWater(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}
