package approvaltest

import (
	"context"
	"sync"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/approval"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// defect is a promise that a fake breaks; empty: none.
type defect string

const (
	asksTheGone    defect = "shows a question whose caller has gone"
	allowsLate     defect = "lets an answer after the end count"
	allowsGarbage  defect = "takes what it does not know for a yes"
	remembers      defect = "takes one yes for all"
	inventsWords   defect = "answers outside of the vocabulary"
	mistakesNo     defect = "takes a no for a cancellation"
	failsConfusing defect = "says unavailable when it was allowed"
)

type fake struct {
	broken  defect
	answer  Answer
	mu      sync.Mutex
	shown   int
	allowed bool
}

func (f *fake) Ask(ctx context.Context, _ approval.Request) approval.Outcome {
	if ctx.Err() != nil && f.broken != asksTheGone {
		return approval.Cancelled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.allowed && f.broken == remembers {
		return approval.AllowedOnce
	}
	f.shown++
	switch f.answer {
	case Yes:
		f.allowed = true
		if f.broken == failsConfusing {
			return approval.Unavailable
		}
		return approval.AllowedOnce
	case No:
		if f.broken == mistakesNo {
			return approval.Cancelled
		}
		return approval.Rejected
	case Nothing:
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		if f.broken == allowsLate {
			return approval.AllowedOnce
		}
		return approval.Cancelled
	}
	switch f.broken {
	case allowsGarbage:
		return approval.AllowedOnce
	case inventsWords:
		return "perhaps"
	}
	return approval.Rejected
}

func opened(broken defect) opener {
	return func(_ testing.TB, a Answer) (approval.Service, func() int) {
		f := &fake{broken: broken, answer: a}
		return f, func() int {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.shown
		}
	}
}

type nobody struct{}

func (nobody) Ask(ctx context.Context, _ approval.Request) approval.Outcome {
	if ctx.Err() != nil {
		return approval.Cancelled
	}
	return approval.Unavailable
}

func TestSuitePassesWhoKeepsThePromises(t *testing.T) {
	Run(t, opened(""), Options{})
	Run(t, func(testing.TB, Answer) (approval.Service, func() int) {
		return nobody{}, func() int { return 0 }
	}, Options{Nobody: true})
}

func TestSuiteNoticesABrokenPromise(t *testing.T) {
	for _, broken := range []defect{
		asksTheGone, allowsLate, allowsGarbage, remembers, inventsWords, mistakesNo, failsConfusing,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			for _, c := range checks(Options{}) {
				if len(testkit.Faults(t, func(tb testing.TB) { c.check(tb, opened(broken)) })) > 0 {
					return
				}
			}
			t.Errorf("no check noticed a service that %s", broken)
		})
	}
}
