package llmopenai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/fx"

	"dsh/module"
	"dsh/modules/internal/llmretry"
	"dsh/modules/llm"
	"dsh/modules/subprocess"
)

// Params is what New takes.
type Params struct {
	fx.In

	Config  Config
	Runtime subprocess.Runtime `optional:"true"` // without one there are no commands to keep the key from
}

// Result is what New gives.
type Result struct {
	fx.Out

	Model  llm.Model
	Runner module.Runner
}

// Module returns the module llm-openai.
func Module() module.Module {
	return module.Define(module.Spec[Config]{
		Name:        "llm-openai",
		Summary:     "calls models over the protocol of OpenAI's chat completions",
		Default:     DefaultConfig,
		Constructor: New,
	})
}

// New returns a model that makes no connection until it is called.
func New(p Params) (Result, error) {
	if err := p.Config.Validate(); err != nil {
		return Result{}, err
	}
	// A transport of the row's own: its idle connections end with the row.
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	c := &client{
		config: p.Config,
		idle:   time.Duration(p.Config.StreamIdleTimeoutMs) * time.Millisecond,
		http:   &http.Client{Transport: transport, CheckRedirect: noRedirects},
	}
	undo := func() {}
	return Result{Model: c, Runner: module.Runner{
		Start: func(context.Context) error {
			if p.Runtime != nil {
				undo = p.Runtime.Withhold(p.Config.keyVariables()...)
			}
			return nil
		},
		Stop: func(context.Context) error {
			undo()
			transport.CloseIdleConnections()
			return nil
		},
	}}, nil
}

// noRedirects keeps the conversation, and the key, with the server that the user named.
func noRedirects(*http.Request, []*http.Request) error { return errRedirect }

var errRedirect = errors.New("the server sends the call to another address; set baseURL to where the API is")

type client struct {
	config Config
	idle   time.Duration
	http   *http.Client
}

var _ llm.Model = (*client)(nil)

// Target implements llm.Model.
func (c *client) Target(ctx context.Context, model string) (llm.Target, error) {
	if ctx.Err() != nil {
		return llm.Target{}, context.Cause(ctx)
	}
	where, err := c.config.look(model)
	if err != nil {
		return llm.Target{}, err
	}
	return where.target, nil
}

// Generate implements llm.Model.
func (c *client) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	if ctx.Err() != nil {
		return llm.Response{}, llm.Aborted(ctx)
	}
	where, err := c.config.look(r.Model)
	if err != nil {
		return llm.Response{}, err
	}
	body, err := request(r, where)
	if err != nil {
		return llm.Response{}, &llm.Error{Code: llm.CodeInvalidRequest, Message: err.Error(), Err: err}
	}
	return llmretry.Do(ctx, c.config.MaxRetries, r.Retrying, func() (llm.Response, error) {
		return c.attempt(ctx, where, body, r.Stream)
	})
}
