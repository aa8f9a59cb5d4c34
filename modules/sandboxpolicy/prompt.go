package sandboxpolicy

import (
	"context"

	"dsh/module"
	"dsh/modules/agent"
	"dsh/modules/sandbox"
)

// telling returns the row's active part, which tells models what they may do to files.
func telling(to agent.Prompt, p sandbox.Policies) module.Runner {
	return module.Registering(func() (func(), error) {
		return agent.Add(to, nil, []agent.Section{{
			ID: "sandbox:policy", Order: agent.OrderSandbox,
			Text: func(ctx context.Context, v agent.View) (string, error) {
				policy, err := p.Resolve(ctx, sandbox.Session{ID: v.Session.ID, CWD: v.Session.CWD}, "")
				if err != nil {
					return "", err
				}
				return policy.Prompt(), nil
			},
		}})
	})
}
