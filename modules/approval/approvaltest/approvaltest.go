// Package approvaltest holds the suite that every approval.Service passes.
package approvaltest

import (
	"context"
	"sync"
	"testing"
	"time"

	"dsh/modules/approval"
)

// Answer is what the person on the other end does about each question that comes.
type Answer int

// What a person may do.
const (
	Yes Answer = iota
	No
	Nothing // keeps silent until the test has ended
	Garbage // answers, in no words that anybody knows
)

// Options adapts the suite to a service.
type Options struct {
	// Nobody says that the service has no way to ask anybody: every question is Unavailable.
	Nobody bool
}

// Run checks that services keep the contract's promises. open returns a service whose person answers so, and how many
// questions that person has been shown.
func Run(t *testing.T, open func(t testing.TB, a Answer) (s approval.Service, shown func() int), o Options) {
	for _, c := range checks(o) {
		t.Run(c.name, func(t *testing.T) { c.check(t, open) })
	}
}

type opener = func(testing.TB, Answer) (approval.Service, func() int)

type check struct {
	name  string
	check func(t testing.TB, open opener)
}

var request = approval.Request{Tool: "bash", CallID: "1", Reason: "escalate sandbox to workspace-write: it must", Detail: "make"}

// limit is how long anything that should happen at once may take.
const limit = 10 * time.Second

func checks(o Options) []check {
	outcome := func(a Answer, want approval.Outcome) func(testing.TB, opener) {
		if o.Nobody {
			want = approval.Unavailable
		}
		return func(t testing.TB, open opener) {
			s, _ := open(t, a)
			if got := s.Ask(t.Context(), request); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	return []check{
		{"a yes allows", outcome(Yes, approval.AllowedOnce)},
		{"a no rejects", outcome(No, approval.Rejected)},
		{"other words do not allow", notAllowed},
		{"a caller that has gone asks nobody", goneBefore},
		{"a cancelled question ends", cancelledMeanwhile(o)},
		{"an answer covers one question", coversOne(o)},
		{"questions at once are each answered", atOnce(o)},
	}
}

func notAllowed(t testing.TB, open opener) {
	s, _ := open(t, Garbage)
	switch got := s.Ask(t.Context(), request); got {
	case approval.Rejected, approval.Unavailable:
	default:
		t.Errorf("got %q, want a refusal of the vocabulary", got)
	}
}

func goneBefore(t testing.TB, open opener) {
	s, shown := open(t, Yes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.Ask(ctx, request); got != approval.Cancelled {
		t.Errorf("got %q, want %q", got, approval.Cancelled)
	}
	if n := shown(); n != 0 {
		t.Errorf("%d questions were shown", n)
	}
}

func cancelledMeanwhile(o Options) func(testing.TB, opener) {
	return func(t testing.TB, open opener) {
		s, shown := open(t, Nothing)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answered := make(chan approval.Outcome, 1)
		go func() { answered <- s.Ask(ctx, request) }()
		want := approval.Cancelled
		if o.Nobody {
			want = approval.Unavailable
		} else {
			for deadline := time.Now().Add(limit); shown() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the question was not shown within %v", limit)
				}
			}
			cancel()
		}
		select {
		case got := <-answered:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(limit):
			t.Errorf("still waiting %v after the end", limit)
		}
	}
}

func coversOne(o Options) func(testing.TB, opener) {
	return func(t testing.TB, open opener) {
		s, shown := open(t, Yes)
		for range 2 {
			s.Ask(t.Context(), request)
		}
		if n := shown(); !o.Nobody && n != 2 {
			t.Errorf("%d questions were shown for 2 equal actions", n)
		}
	}
}

func atOnce(o Options) func(testing.TB, opener) {
	return func(t testing.TB, open opener) {
		s, _ := open(t, Yes)
		want := approval.AllowedOnce
		if o.Nobody {
			want = approval.Unavailable
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got := s.Ask(t.Context(), request); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
		all.Wait()
	}
}
