package llmopenai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"dsh/modules/llm"
)

// explain returns err as the contract has it, without the key.
func (c *client) explain(err error, x *exchange, where place) *llm.Error {
	e := c.classify(err, where)
	if x.header != nil {
		e.RequestID = cut(firstOf(x.header, "X-Request-Id", "X-Deepseek-Request-Id"), 200)
		if e.Status >= http.StatusBadRequest {
			e.RetryAfterMs = retryAfter(x.header.Get("Retry-After"), time.Now())
		}
	}
	e.Message = cut(e.Message, 2000) + advice(e, where)
	if len(where.key) >= 4 && strings.Contains(e.Message+e.RequestID, where.key) {
		e.Message = strings.ReplaceAll(e.Message, where.key, "[key]")
		e.RequestID = strings.ReplaceAll(e.RequestID, where.key, "[key]")
		e.Err = nil
	}
	return e
}

// advice returns what a user would change about a call that can not succeed as it is, to stand behind what went wrong.
func advice(e *llm.Error, where place) string {
	switch {
	case e.Code == llm.CodeAuth && where.key == "":
		return " (no key was sent; apiKeyEnv in the row llm names the variable that has one)"
	case e.Code == llm.CodeAuth:
		return fmt.Sprintf(" (the key is that in %s)", where.keyFrom)
	case e.Status == http.StatusNotFound:
		return fmt.Sprintf(" (at %s, for the model %q: %s says where the API is, and --model, or model in the row llm, which model to call)",
			where.baseURL, where.target.Model, where.baseFrom)
	case e.Code == llm.CodeTransport:
		return fmt.Sprintf(" (%s says where the API is)", where.baseFrom)
	}
	return ""
}

func (c *client) classify(err error, where place) *llm.Error {
	if e, is := errors.AsType[*llm.Error](err); is {
		return e
	}
	// The first may wrap the second, which then says nothing.
	if e, is := errors.AsType[*openai.RequestError](err); is {
		return ofStatus(e.HTTPStatusCode, string(e.Body), plain(e.Body))
	}
	if e, is := errors.AsType[*openai.APIError](err); is {
		return ofStatus(e.HTTPStatusCode, fmt.Sprintf("%v %s %s", e.Code, e.Type, e.Message), e.Message)
	}
	for _, refused := range []error{
		openai.ErrChatCompletionInvalidModel, openai.ErrReasoningEffortUnsupported, openai.ErrReasoningToolsRequireResponses,
		openai.ErrReasoningSamplingUnsupported, openai.ErrReasoningModelMaxTokensDeprecated,
		openai.ErrReasoningModelLimitationsLogprobs, openai.ErrReasoningModelLimitationsOther,
	} {
		if errors.Is(err, refused) {
			return &llm.Error{Code: llm.CodeInvalidRequest, Message: refused.Error()}
		}
	}
	if errors.Is(err, errRedirect) {
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: errRedirect.Error()}
	}
	if errors.Is(err, errTooLong) {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: errTooLong.Error()}
	}
	return &llm.Error{Code: llm.CodeTransport, Message: fmt.Sprintf("the call of %s failed: %v", where.baseURL, err), Err: err}
}

// streamError returns the error that a server reports within a stream.
func streamError(raw json.RawMessage) error {
	var e openai.APIError
	if err := json.Unmarshal(raw, &e); err != nil {
		return ofStatus(0, string(raw), plain(raw))
	}
	status, _ := e.Code.(int)
	if status < http.StatusBadRequest || status > 599 {
		status = 0
	}
	return ofStatus(status, fmt.Sprintf("%v %s %s", e.Code, e.Type, e.Message), e.Message)
}

// ofStatus returns the error of a response with this status; 0: it was reported within a stream.
func ofStatus(status int, text, message string) *llm.Error {
	e := &llm.Error{Status: status, Message: message, Code: "HTTP_" + strconv.Itoa(status)}
	if strings.TrimSpace(message) == "" {
		e.Message = fmt.Sprintf("model API error (HTTP %d)", status)
	}
	refused := llm.RefusedText(text)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Code = llm.CodeAuth
	case refused != "":
		e.Code = refused
	case status == http.StatusTooManyRequests, status == 0 && strings.Contains(strings.ToLower(text), "rate limit"):
		e.Code = llm.CodeRateLimit
	case status == http.StatusPaymentRequired:
		e.Code = llm.CodeQuota
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		e.Code = llm.CodeInvalidRequest
	case status >= http.StatusInternalServerError, status == 0:
		e.Code = llm.CodeServer
	}
	return e
}

// plain returns the beginning of a body that is not what it should be, on one line.
func plain(body []byte) string { return cut(strings.Join(strings.Fields(string(body)), " "), 300) }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

func firstOf(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// retryAfter returns how long a Retry-After asks to wait, in milliseconds: whole seconds, or a date.
func retryAfter(value string, now time.Time) int64 {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
		return max(seconds, 0) * 1000
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now).Milliseconds(), 0)
	}
	return 0
}
