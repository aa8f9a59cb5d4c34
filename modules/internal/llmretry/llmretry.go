// Package llmretry makes a model's calls again that failed for a while. It is what providers of llm.Model share.
package llmretry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"dsh/modules/llm"
)

const (
	initialDelay = 500 * time.Millisecond
	maxDelay     = 10 * time.Second
	jitter       = 0.1
	// MaxRetryAfter is the longest wait that a provider may ask for. Providers ask for up to a minute when a rate is
	// exceeded; who asks for more will not be there again soon.
	MaxRetryAfter = time.Minute
)

// Do calls attempt until it succeeds, fails for good, or has been called 1+maxRetries times. Before each wait it calls
// retrying, if that is not nil, whose error it returns. When ctx ends in a wait it returns llm.Aborted.
func Do(
	ctx context.Context, maxRetries int, retrying func(llm.Retry) error, attempt func() (llm.Response, error),
) (llm.Response, error) {
	for retry := 1; ; retry++ {
		r, err := attempt()
		failure, is := errors.AsType[*llm.Error](err)
		if err == nil || !is || !llm.Passing(failure.Code) || retry > maxRetries || ctx.Err() != nil {
			return r, err
		}
		wait := delay(retry)
		if asked := time.Duration(failure.RetryAfterMs) * time.Millisecond; asked > MaxRetryAfter {
			return r, err
		} else if asked > 0 {
			wait = asked
		}
		if retrying != nil {
			told := llm.Retry{Attempt: retry, MaxRetries: maxRetries, DelayMs: wait.Milliseconds(), Failure: failure}
			if err := retrying(told); err != nil {
				return llm.Response{}, err
			}
		}
		if !Wait(ctx, wait) {
			return llm.Response{}, llm.Aborted(ctx)
		}
	}
}

// Wait waits for d, and reports whether ctx lasted.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// delay returns the wait before a retry when nobody asks for another: doubled each time, and spread, so that clients
// that failed together do not come back together.
func delay(retry int) time.Duration {
	d := maxDelay
	if retry < 6 {
		d = min(initialDelay<<(retry-1), maxDelay)
	}
	return min(time.Duration(float64(d)*(1-jitter+2*jitter*rand.Float64())), maxDelay)
}
