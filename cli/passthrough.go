package cli

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"syscall"

	"dsh/modules/shell"
)

// exitPipe is how a shell reports a program that SIGPIPE ended: what dsh's own reader leaving means for the command.
const exitPipe = exitSignal + 13

// passthrough copies a command's output to dsh's own streams as it arrives.
type passthrough struct {
	stdout, stderr io.Writer
	broken         context.CancelCauseFunc // called when nobody reads any more
	gone           atomic.Bool
}

// write is a Progress function: each stream calls it from a goroutine of its own.
func (p *passthrough) write(stream string, b []byte) {
	w := p.stdout
	if shell.Stream(stream) == shell.Stderr {
		w = p.stderr
	}
	if p.gone.Load() {
		return
	}
	if _, err := w.Write(b); errors.Is(err, syscall.EPIPE) {
		// A command that wrote to the pipe itself would have been ended by SIGPIPE.
		p.gone.Store(true)
		p.broken(err)
	}
}

func (p *passthrough) isBroken() bool { return p.gone.Load() }
