package toolslocal

import (
	"bytes"
	"context"
	"errors"

	"dsh/modules/tools"
)

// observe shows a result to the hooks, each of which sees what the one before it made of it.
func (c *call) observe(ctx context.Context, e tools.Execution, r tools.Result) tools.Result {
	for _, h := range c.after {
		var next tools.Result
		err := c.contain("hook after", e, func() (err error) {
			next, err = (*h)(ctx, own(e), copied(r))
			return err
		})
		if err == nil {
			r, err = c.accept(e, r, next)
		}
		if err != nil {
			return failure(err)
		}
	}
	return r
}

// accept returns the result that follows from r when a hook has answered it with next.
func (c *call) accept(e tools.Execution, r, next tools.Result) (tools.Result, error) {
	newContent := next.Content != r.Content
	newValue := next.Value != nil && !bytes.Equal(next.Value, r.Value)
	switch {
	case r.Error != nil && newValue:
		return r, errors.New("tools/post-execute cannot replace the value of a failed result")
	case r.Error != nil && (next.Error == nil || *next.Error == *r.Error): // a failed call stays failed
		r.Content = next.Content
		return checked(r), nil
	case next.Error != nil:
		feedback := ""
		if newContent {
			feedback = next.Content
		}
		return blocked(feedback, *next.Error), nil
	case newValue && newContent:
		return r, errors.New("tools/post-execute accept decision cannot replace both value and content")
	case newValue:
		return c.present(e, bytes.Clone(next.Value)), nil
	}
	r.Content = next.Content
	return checked(r), nil
}

// blocked is a result that a hook put aside: the model sees the feedback alone.
func blocked(feedback string, e tools.Error) tools.Result {
	if e.Message == "" {
		e.Message = feedback
	}
	if e.Message == "" {
		e.Message = "tool result blocked by post-execute policy"
	}
	if e.Code == "" {
		e.Code = tools.CodeDenied
	}
	if feedback == "" {
		feedback = e.Message
	}
	return checked(tools.Result{Content: feedback, Error: &e})
}

// checked refuses content that would not reach the model as it is.
func checked(r tools.Result) tools.Result {
	if !valid(r.Content) {
		return failed(tools.CodeInternal, "tool result must be losslessly JSON-serializable")
	}
	return r
}

func copied(r tools.Result) tools.Result {
	r.Value = bytes.Clone(r.Value)
	if r.Error != nil {
		e := *r.Error
		r.Error = &e
	}
	return r
}
