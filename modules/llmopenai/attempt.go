package llmopenai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	openai "github.com/sashabaranov/go-openai"

	"dsh/modules/llm"
)

var errIdle = errors.New("idle")

// attempt makes one call.
func (c *client) attempt(
	ctx context.Context, where place, body openai.ChatCompletionRequest, say func(llm.Delta),
) (llm.Response, error) {
	callCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := newWatch(c.idle, func() { end(errIdle) })
	defer w.stop()
	x := &exchange{http: c.http, moved: w.moved}
	config := openai.DefaultConfig(where.key)
	config.BaseURL, config.HTTPClient = where.baseURL, x

	said := &assembly{say: say, halves: halves{}, response: llm.Response{Target: where.target}}
	err := receive(callCtx, openai.NewClientWithConfig(config), body, x, said)
	switch {
	case ctx.Err() != nil:
		return said.response.Interrupted(), llm.Aborted(ctx)
	case context.Cause(callCtx) == errIdle: //nolint:errorlint // the very value
		err = &llm.Error{
			Code:    llm.CodeTimeout,
			Message: fmt.Sprintf("the model's stream was idle for %d ms", c.idle.Milliseconds()),
		}
	case err == nil:
		r, err := said.finish()
		if err == nil {
			return r, nil
		}
		return llm.Response{}, c.explain(err, x, where)
	}
	return llm.Response{}, c.explain(err, x, where)
}

// receive makes the call and hands what arrives to said.
func receive(ctx context.Context, client *openai.Client, body openai.ChatCompletionRequest, x *exchange, said *assembly) error {
	stream, err := client.CreateChatCompletionStream(ctx, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		raw, err := stream.RecvRaw()
		switch {
		case errors.Is(err, io.EOF) && (x.done || said.finished != ""):
			// Some servers hang up after the last piece without a word.
			return nil
		case errors.Is(err, io.EOF):
			return &llm.Error{Code: llm.CodeStreamClosed, Message: "the model's stream ended before the response did"}
		case err != nil:
			return err
		}
		var c chunk
		if err := json.Unmarshal(markHalves(raw), &c); err != nil {
			return &llm.Error{Code: llm.CodeMalformedResponse, Message: fmt.Sprintf("malformed SSE payload: %.120s", raw), Err: err}
		}
		if err := said.add(c); err != nil {
			return err
		}
	}
}

// chunk is what the library knows of a piece of a stream, and what servers say beyond that.
type chunk struct {
	openai.ChatCompletionStreamResponse
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"` // an error in the middle of a stream
}

type choice struct {
	openai.ChatCompletionStreamChoice
	Delta struct {
		openai.ChatCompletionStreamChoiceDelta
		Reasoning string `json:"reasoning"` // another name for reasoning_content
	} `json:"delta"`
}

type usage struct {
	openai.Usage
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens"` // DeepSeek's word for it
}

func (u *usage) counted() *llm.Usage {
	if u == nil {
		return nil
	}
	cached := u.PromptCacheHitTokens
	if d := u.PromptTokensDetails; d != nil && d.CachedTokens > 0 {
		cached = d.CachedTokens
	}
	counted := &llm.Usage{
		InputTokens: int64(max(u.PromptTokens-cached, 0)), CacheReadTokens: int64(cached), OutputTokens: int64(u.CompletionTokens),
	}
	if d := u.CompletionTokensDetails; d != nil {
		counted.ReasoningTokens = int64(d.ReasoningTokens)
	}
	return counted
}
