package approvalterminal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/approval"
	"dsh/modules/approval/approvaltest"
	"dsh/modules/approvalterminal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// person sits in front of a terminal that another process, which asks, belongs to.
type person struct {
	screen *os.File // the terminal's other end

	mu     sync.Mutex
	seen   strings.Builder
	writes *json.Encoder
	calls  map[int]chan approval.Outcome
	next   int
}

// message goes to and from the process that asks.
type message struct {
	ID      int
	Ask     *approval.Request
	Outcome approval.Outcome
}

const helper = "DSH_TEST_ASK"

// sit opens a terminal and starts a process that belongs to it.
func sit(t testing.TB, answer func(questions int) string) *person {
	t.Helper()
	screen, slave, err := testkit.OpenTerminal()
	must(t, err)
	defer slave.Close()

	cmd := exec.Command(os.Args[0], "-test.run=^TestProcessThatAsks$")
	cmd.Env = append(os.Environ(), helper+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{slave}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &person{screen: screen, writes: json.NewEncoder(in), calls: map[int]chan approval.Outcome{}}
	var work sync.WaitGroup
	work.Go(func() { p.read(answer) })
	work.Go(func() {
		for d := json.NewDecoder(out); ; {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			p.mu.Lock()
			p.calls[m.ID] <- m.Outcome
			p.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		screen.Close()
		work.Wait()
	})
	return p
}

func (p *person) read(answer func(int) string) {
	answered := 0
	for buf := make([]byte, 4096); ; {
		n, err := p.screen.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		for ; answered < p.shown(); answered++ {
			fmt.Fprint(p.screen, answer(answered))
		}
	}
}

func (p *person) screenshot() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (p *person) shown() int { return strings.Count(p.screenshot(), "[y/N] ") }

func (p *person) Ask(ctx context.Context, r approval.Request) approval.Outcome {
	if ctx.Err() != nil {
		r.CallID = "cancelled" // tells the other process to ask with a context that has ended
	}
	p.mu.Lock()
	p.next++
	id := p.next
	got := make(chan approval.Outcome, 1)
	p.calls[id] = got
	_ = p.writes.Encode(message{ID: id, Ask: &r})
	p.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.writes.Encode(message{ID: id})
	})
	defer stop()
	return <-got
}

// TestProcessThatAsks is the other process. It tests nothing by itself.
func TestProcessThatAsks(t *testing.T) {
	if os.Getenv(helper) == "" {
		return
	}
	r, err := approvalterminal.New(approvalterminal.Params{Config: approvalterminal.DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	var mu sync.Mutex
	var work sync.WaitGroup
	cancels := map[int]context.CancelFunc{}
	out := json.NewEncoder(os.Stdout)
	for d := json.NewDecoder(os.Stdin); ; {
		var m message
		if d.Decode(&m) != nil {
			break
		}
		mu.Lock()
		if m.Ask == nil {
			cancels[m.ID]()
			mu.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancels[m.ID] = cancel
		mu.Unlock()
		if m.Ask.CallID == "cancelled" {
			cancel()
		}
		work.Go(func() {
			o := r.Service.Ask(ctx, *m.Ask)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(message{ID: m.ID, Outcome: o})
		})
	}
	mu.Lock()
	for _, cancel := range cancels {
		cancel()
	}
	mu.Unlock()
	work.Wait()
	os.Exit(0)
}

func TestAPersonAtATerminalKeepsTheContract(t *testing.T) {
	approvaltest.Run(t, func(t testing.TB, a approvaltest.Answer) (approval.Service, func() int) {
		p := sit(t, func(int) string {
			return map[approvaltest.Answer]string{
				approvaltest.Yes: "Yes\n", approvaltest.No: "n\n", approvaltest.Nothing: "", approvaltest.Garbage: "yes please\n",
			}[a]
		})
		return p, p.shown
	}, approvaltest.Options{})
}

func TestWithoutATerminalNobodyIsAsked(t *testing.T) {
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		f.Close()
		t.Skip("this test needs to have no terminal")
	}
	approvaltest.Run(t, func(t testing.TB, a approvaltest.Answer) (approval.Service, func() int) {
		r, err := approvalterminal.New(approvalterminal.Params{Config: approvalterminal.DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		return r.Service, func() int { return 0 }
	}, approvaltest.Options{Nobody: true})
}

func TestWhatWasTypedBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	p := sit(t, func(int) string { return "n\n" })
	fmt.Fprint(p.screen, "y\n")
	testkit.Eventually(t, 10*time.Second, "the terminal has what was typed", func() bool {
		return strings.Contains(p.screenshot(), "y\r\n")
	})
	if got := p.Ask(t.Context(), approval.Request{Tool: "bash"}); got != approval.Rejected {
		t.Errorf("got %q", got)
	}
}

func TestAnEmptyLineIsANo(t *testing.T) {
	t.Parallel()
	answers := []string{"\n", " Y \n", "\x04"}
	p := sit(t, func(n int) string { return answers[n] })
	for i, want := range []approval.Outcome{approval.Rejected, approval.AllowedOnce, approval.Unavailable} {
		if got := p.Ask(t.Context(), approval.Request{Tool: "bash"}); got != want {
			t.Errorf("%q: got %q, want %q", answers[i], got, want)
		}
	}
}

func TestAModelCannotDrawOnTheScreen(t *testing.T) {
	t.Parallel()
	p := sit(t, func(int) string { return "n\n" })
	p.Ask(t.Context(), approval.Request{
		Tool: "bash", Detail: "rm -rf /\x1b[2J\x1b[Hls\r\n\u202etxt\x07", Reason: strings.Repeat("x", 5000),
	})
	got := p.screenshot()
	for _, sign := range []string{"\x1b", "\x07", "\u202e", strings.Repeat("x", 3000)} {
		if strings.Contains(got, sign) {
			t.Errorf("%.20q is on the screen", sign)
		}
	}
	for _, sign := range []string{`rm -rf /\u001b[2J\u001b[Hls\u000d`, `\u202etxt\u0007`, "[3000 more bytes]", "Allow this once? [y/N] "} {
		if !strings.Contains(got, sign) {
			t.Errorf("%q is not on the screen: %q", sign, got)
		}
	}
}

func TestNeverRejectsUnasked(t *testing.T) {
	t.Parallel()
	r, err := approvalterminal.New(approvalterminal.Params{Config: approvalterminal.Config{Policy: approvalterminal.Never}, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	if got := r.Service.Ask(t.Context(), approval.Request{}); got != approval.Rejected {
		t.Errorf("got %q", got)
	}
	for _, p := range []approvalterminal.Policy{"", "always", "ASK"} {
		if err := (approvalterminal.Config{Policy: p}).Validate(); err == nil || !strings.Contains(err.Error(), "policy must be ask or never") {
			t.Errorf("%q: got %v", p, err)
		}
	}
	if m := approvalterminal.Module(); len(m.Provides()) != 1 || len(m.Needs()) != 2 || !m.Needs()[0].Optional || !m.Needs()[1].Optional {
		t.Errorf("provides %v, needs %v", m.Provides(), m.Needs())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
