package llmretry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/internal/llmretry"
	"dsh/modules/llm"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func failing(e *llm.Error, calls *int) func() (llm.Response, error) {
	return func() (llm.Response, error) {
		*calls++
		return llm.Response{}, e
	}
}

func TestWaitsDoubleUpToTenSecondsAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls int
		var waits []llm.Retry
		began := time.Now()
		_, err := llmretry.Do(t.Context(), 7, func(r llm.Retry) error {
			waits = append(waits, r)
			return nil
		}, failing(&llm.Error{Code: llm.CodeServer}, &calls))
		if e, is := errors.AsType[*llm.Error](err); !is || e.Code != llm.CodeServer || calls != 8 {
			t.Fatalf("%v after %d calls, want the error of the 8th", err, calls)
		}
		var sum int64
		for i, base := range []int64{500, 1000, 2000, 4000, 8000, 10000, 10000} {
			w := waits[i]
			if w.Attempt != i+1 || w.MaxRetries != 7 || w.DelayMs < base*9/10-1 || w.DelayMs > min(base*11/10, 10000) {
				t.Errorf("retry %d is %+v, want about %d ms", i+1, w, base)
			}
			sum += w.DelayMs
		}
		if took := time.Since(began).Milliseconds(); took < sum || took > sum+10 {
			t.Errorf("took %d ms, want the %d that were told", took, sum)
		}
	})
}

func TestProviderSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls int
		began := time.Now()
		_, _ = llmretry.Do(t.Context(), 1, nil, failing(&llm.Error{Code: llm.CodeRateLimit, RetryAfterMs: 30_000}, &calls))
		if took := time.Since(began); calls != 2 || took != 30*time.Second {
			t.Errorf("%d calls in %v, want 2 in 30s", calls, took)
		}
		calls = 0
		_, _ = llmretry.Do(t.Context(), 5, nil, failing(&llm.Error{Code: llm.CodeRateLimit, RetryAfterMs: 3_600_000}, &calls))
		if calls != 1 {
			t.Errorf("%d calls of a provider that asks for an hour, want 1", calls)
		}
	})
}

func TestFinalFailureIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{llm.CodeAuth, llm.CodeQuota, llm.CodeInvalidRequest, llm.CodeContextWindow, llm.CodeAborted, "HTTP_404"} {
		var calls int
		_, err := llmretry.Do(t.Context(), 5, nil, failing(&llm.Error{Code: code}, &calls))
		if err == nil || calls != 1 {
			t.Errorf("%s: %d calls, %v", code, calls, err)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		var calls int
		began := time.Now()
		_, err := llmretry.Do(ctx, 5, nil, failing(&llm.Error{Code: llm.CodeServer}, &calls))
		if e, is := errors.AsType[*llm.Error](err); !is || e.Code != llm.CodeAborted || !errors.Is(err, cause) || calls != 1 {
			t.Errorf("%d calls, %v", calls, err)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %v, want 100ms", took)
		}
	})
}
