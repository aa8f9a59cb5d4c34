package compose

import (
	"context"
	"errors"
	"time"
)

var (
	errBudget    = errors.New("the row's time is used up") // the cause that ends a hook's context
	errAbandoned = errors.New("did not return")
	errExited    = errors.New("ended its goroutine instead of returning")
)

// within calls f on a goroutine of its own and returns what it returns; with an ended ctx it returns the cause at once.
// When ctx ends, f has respite to return; then within returns errAbandoned, and late, if not nil, is called with f's
// error whenever that comes.
func within(ctx context.Context, respite time.Duration, f func(context.Context) error, late func(error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	returned, abandoned := make(chan error), make(chan struct{})
	go func() {
		err := errExited
		defer func() {
			select {
			case returned <- err:
			case <-abandoned:
				if late != nil {
					late(err)
				}
			}
		}()
		err = f(ctx)
	}()

	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	timeout := time.NewTimer(respite)
	defer timeout.Stop()
	select {
	case err := <-returned:
		return err
	case <-timeout.C:
		close(abandoned)
		return errAbandoned
	}
}
