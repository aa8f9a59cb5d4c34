package toolstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dsh/modules/tools"
)

func cancellation() []check {
	return []check{
		{"a call that comes cancelled reaches nobody", func(t testing.TB, r tools.Registry) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
				t.Error("the hook was asked")
				return tools.Decision{}, nil
			})
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			for _, e := range []tools.Execution{execution("a", "x"), execution("nobody", "x"), {Name: "a"}} {
				wantError(t, r.Execute(ctx, e), tools.CodeAbortedBefore, "tool call aborted before dispatch")
			}
		}},
		{"a call that ends while a hook is asked does not reach the tool", func(t testing.TB, r tools.Registry) {
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				t.Error("the tool was executed")
				return "", nil
			}))
			for _, c := range []struct {
				decision   tools.Decision
				err        error
				code, text string
			}{
				{tools.Decision{}, nil, tools.CodeAbortedBefore, "tool call aborted before dispatch"},
				{tools.Decision{}, context.Canceled, tools.CodeAbortedBefore, "tool call aborted before dispatch"},
				{tools.Decision{}, errBoom, tools.CodeInternal, "boom"},
				{tools.Decision{Verdict: tools.Deny, Reason: "no"}, nil, tools.CodeDenied, "no"},
			} {
				ctx, cancel := context.WithCancel(t.Context())
				undo := r.BeforeExecute(func(context.Context, tools.Execution) (tools.Decision, error) {
					cancel()
					return c.decision, c.err
				})
				got := r.Execute(ctx, execution("a", "x"))
				undo()
				cancel()
				wantError(t, got, c.code, c.text)
			}
		}},
		{"a cancelled tool is told and waited for", func(t testing.TB, r tools.Registry) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ended atomic.Bool
			release, told := make(chan struct{}), make(chan struct{})
			let := sync.OnceFunc(func() { close(release) })
			defer let()
			register(t, r, doing("a", func(ctx context.Context, _ tools.Execution) (any, error) {
				defer ended.Store(true)
				cancel()
				select {
				case <-ctx.Done():
				case <-time.After(patience):
					return nil, errors.New("the tool was not told")
				}
				close(told)
				<-release
				return "too late", nil
			}))
			results := make(chan tools.Result, 1)
			go func() { results <- r.Execute(ctx, execution("a", "x")) }()
			select {
			case <-told:
			case got := <-results:
				t.Fatalf("the call came back before its tool was told: %+v", got)
			}
			// A registry that abandons the tool has every reason to come back by now; give it the time to.
			select {
			case got := <-results:
				t.Fatalf("the call came back before its tool: %+v", got)
			case <-time.After(50 * time.Millisecond):
			}
			let()
			got := <-results
			if !ended.Load() {
				t.Fatal("the call came back before its tool")
			}
			wantError(t, got, tools.CodeAborted, "tool call aborted")
		}},
		{"a tool that returns its context's end is aborted", func(t testing.TB, r tools.Registry) {
			cause := errors.New("somebody pressed a key")
			for name, fail := range map[string]func(context.Context) error{
				"the cause": context.Cause,
				"wrapped":   func(ctx context.Context) error { return fmt.Errorf("waiting: %w", ctx.Err()) },
				"coded": func(context.Context) error {
					return &tools.Error{Code: tools.CodeAborted, Message: "tool call aborted"}
				},
			} {
				ctx, cancel := context.WithCancelCause(t.Context())
				register(t, r, doing(name, func(ctx context.Context, _ tools.Execution) (any, error) {
					cancel(cause)
					<-ctx.Done()
					return nil, fail(ctx)
				}))
				got := r.Execute(ctx, execution(name, "x"))
				cancel(nil)
				wantError(t, got, tools.CodeAborted, "tool call aborted")
			}
		}},
		{"a cancelled tool's own failure is not hidden", func(t testing.TB, r tools.Registry) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			register(t, r, doing("a", func(context.Context, tools.Execution) (any, error) {
				cancel()
				return nil, &tools.Error{Code: "LEFT_BEHIND", Message: "boom"}
			}))
			wantError(t, r.Execute(ctx, execution("a", "x")), "LEFT_BEHIND", "boom")
		}},
	}
}
