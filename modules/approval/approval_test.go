package approval_test

import (
	"context"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/approval"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type answer func(context.Context, approval.Request) approval.Outcome

func (a answer) Ask(ctx context.Context, r approval.Request) approval.Outcome { return a(ctx, r) }

func TestOnlyAnAnswerOfTheVocabularyAllows(t *testing.T) {
	t.Parallel()
	says := func(o approval.Outcome) approval.Service {
		return answer(func(context.Context, approval.Request) approval.Outcome { return o })
	}
	for _, c := range []struct {
		name    string
		service approval.Service
		want    approval.Outcome
	}{
		{"allowed", says(approval.AllowedOnce), approval.AllowedOnce},
		{"rejected", says(approval.Rejected), approval.Rejected},
		{"no service", nil, approval.Unavailable},
		{"nothing", says(""), approval.Unavailable},
		{"another case", says("Allowed-Once"), approval.Unavailable},
		{"a word from elsewhere", says("allowed-always"), approval.Unavailable},
		{"a panic", answer(func(context.Context, approval.Request) approval.Outcome { panic("no") }), approval.Unavailable},
	} {
		if got := approval.Decide(t.Context(), c.service, approval.Request{}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnAnswerAfterTheEndIsDiscarded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	late := answer(func(context.Context, approval.Request) approval.Outcome {
		cancel()
		return approval.AllowedOnce
	})
	if got := approval.Decide(ctx, late, approval.Request{}); got != approval.Cancelled {
		t.Errorf("cancelled while it was asked: got %q", got)
	}
	asked := answer(func(context.Context, approval.Request) approval.Outcome {
		t.Error("asked although the caller has gone")
		return approval.AllowedOnce
	})
	if got := approval.Decide(ctx, asked, approval.Request{}); got != approval.Cancelled {
		t.Errorf("cancelled before: got %q", got)
	}
}
