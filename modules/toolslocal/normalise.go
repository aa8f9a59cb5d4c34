package toolslocal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"dsh/modules/tools"
)

// panicked is a panic of a tool, a renderer or a hook.
type panicked struct {
	who   string
	value any
}

func (p *panicked) Error() string { return fmt.Sprintf("%s panicked: %v", p.who, p.value) }

// contain runs f, turning a panic into an error. The stack is for the log: a model has no use for it.
func (c *call) contain(part string, e tools.Execution, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			who := fmt.Sprintf("tool %q", e.Name)
			if part != "tool" {
				who = part + " " + who
			}
			err = &panicked{who: who, value: v}
			c.log.Error("tool call panicked", "tool", e.Name, "call", e.CallID, "part", part,
				"panic", message(err), "stack", string(debug.Stack()))
		}
	}()
	return f()
}

// failed is the result of a call that went wrong, as a model sees it.
func failed(code, message string) tools.Result {
	return tools.Result{Content: "Error: " + message, Error: &tools.Error{Code: code, Message: message}}
}

// failure is failed for an error that may carry a code.
func failure(err error) tools.Result {
	code := tools.CodeInternal
	var coded *tools.Error
	if errors.As(err, &coded) && coded != nil && coded.Code != "" {
		code = coded.Code
	}
	return failed(code, message(err))
}

// message returns what err says, whatever its Error method does.
func message(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "<unprintable thrown value>"
		}
	}()
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// endedBy reports whether err is the end of ctx and no failure of its own.
func endedBy(ctx context.Context, err error) bool {
	var coded *tools.Error
	if errors.As(err, &coded) && coded != nil {
		return coded.Code == tools.CodeAborted
	}
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}

// snapshot returns value as JSON. JSON escapes nothing that it need not: this is what a script reads.
func snapshot(value any) (raw json.RawMessage, fault string) {
	defer func() {
		if v := recover(); v != nil { // in somebody's MarshalJSON
			raw, fault = nil, fmt.Sprintf("value snapshot failed: %v", v)
		}
	}()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	var method *json.MarshalerError
	switch {
	case errors.As(err, &method):
		return nil, "value snapshot failed: " + message(err)
	case err != nil:
		return nil, "value is not lossless JSON"
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), ""
}

// shorten bounds what a message repeats of a name that a model made up.
func shorten(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

func valid(text string) bool { return utf8.ValidString(text) }
