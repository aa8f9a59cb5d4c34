package cli

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// output is standard output. It remembers that something could not be written, which whoever writes need not look at.
type output struct {
	to io.Writer

	mu  sync.Mutex
	err error // the first
}

// Write implements io.Writer. It may be called concurrently, as far as that which it writes to may.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// lost returns why something was not written, or nil. That nobody reads any more is no loss.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}

// reportLost is report for a command whose output was not written in full, which is then its failure.
func (a *app) reportLost(cmd *cobra.Command, err, lost error) int {
	var exit *exitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, lost) {
		a.report(cmd, err)
	}
	fmt.Fprintf(a.stderr, "dsh: standard output: %v\n", lost)
	switch {
	case cmd.Name() == "exec":
		return exitOurs
	case exit != nil && exit.code != 0:
		return exit.code
	}
	return exitFailed
}
