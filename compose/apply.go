package compose

import (
	"context"
	"log/slog"

	"dsh/internal/diag"
)

// RunOptions are what rows share with their host.
type RunOptions struct {
	Log *slog.Logger // each row gets it with its id as the attribute row; nil: nothing is logged

	// Began, if not nil, is called before the first row starts, with Kill of the composition to be: for a host that may
	// have to end while Apply is at work.
	Began func(kill func())
}

// Apply starts the rows of p, in order; a row is constructed while rows before it may still be starting, as fx does it.
// When a row fails or panics, overruns its budget, or ctx ends while it starts, the rows before it are stopped in reverse,
// and the error names the row and says what else went wrong. The running rows do not depend on ctx any more once Apply
// has returned.
func Apply(ctx context.Context, p *Plan, o RunOptions) (*Running, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	r := newRunning(o.Log, giveUp)
	if o.Began != nil {
		o.Began(r.Kill)
	}
	constructed := r.construct(ctx, p.mounts)
	for w := range constructed {
		if err := r.start(ctx, w); err != nil {
			giveUp(err)
			for range constructed { // until no constructor is at work
			}
			err = diag.Collect(err, r.Stop())
			r.Kill()
			return nil, err
		}
	}
	return r, nil
}
