package llmopenai

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"dsh/modules/llm"
)

// assembly puts a response together out of its pieces.
type assembly struct {
	say      func(llm.Delta)
	response llm.Response
	finished string

	halves          halves
	text, reasoning int         // positions in Content plus 1; 0: none yet
	calls           map[int]int // by the stream's index
	last            int         // the stream's index of the call that was added to last
}

func (a *assembly) add(c chunk) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamError(c.Error)
	}
	if u := c.Usage.counted(); u != nil {
		a.response.Usage = u
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // more than one was not asked for
		}
		a.addText(&a.reasoning, llm.ReasoningBlock, cmp.Or(choice.Delta.ReasoningContent, choice.Delta.Reasoning))
		a.addText(&a.text, llm.TextBlock, choice.Delta.Content+choice.Delta.Refusal)
		for _, call := range choice.Delta.ToolCalls {
			a.addCall(call)
		}
		if choice.FinishReason != "" {
			a.finished = string(choice.FinishReason)
		}
	}
	return nil
}

func (a *assembly) addText(at *int, kind llm.BlockType, text string) {
	if text == "" {
		return
	}
	if *at == 0 {
		a.response.Content = append(a.response.Content, llm.Block{Type: kind})
		*at = len(a.response.Content)
	}
	if text = a.halves.join(*at-1, text); text == "" {
		return
	}
	a.response.Content[*at-1].Text += text
	a.tell(llm.Delta{Index: *at - 1, Type: kind, Text: text})
}

// addCall adds a piece of a tool call. Servers without an index begin a new call with a new id.
func (a *assembly) addCall(call openai.ToolCall) {
	index := a.last
	switch {
	case call.Index != nil:
		index = *call.Index
	case call.ID != "" && len(a.calls) > 0:
		index = len(a.calls)
	}
	a.last = index
	at, known := a.calls[index]
	d := llm.Delta{Type: llm.ToolCallBlock}
	if !known {
		at = len(a.response.Content)
		if a.calls == nil {
			a.calls = map[int]int{}
		}
		a.calls[index] = at
		d.CallID, d.Name = a.unique(call.ID, index), call.Function.Name
		a.response.Content = append(a.response.Content, llm.Block{Type: llm.ToolCallBlock, CallID: d.CallID, Name: d.Name})
	}
	block := &a.response.Content[at]
	if block.Name == "" && call.Function.Name != "" {
		block.Name, d.Name = call.Function.Name, call.Function.Name
	}
	if call.Function.Arguments != "" {
		d.Text = a.halves.join(at, call.Function.Arguments)
	}
	block.Arguments += d.Text
	d.Index = at
	a.tell(d)
}

// endHalves ends blocks that end with half a character.
func (a *assembly) endHalves() {
	for _, at := range slices.Sorted(maps.Keys(a.halves)) {
		block := &a.response.Content[at]
		d := llm.Delta{Index: at, Type: block.Type, Text: a.halves.join(at, "")}
		if block.Type == llm.ToolCallBlock {
			block.Arguments += d.Text
		} else {
			block.Text += d.Text
		}
		a.tell(d)
	}
}

// unique returns id, or another where the server gave none or one that another call has.
func (a *assembly) unique(id string, index int) string {
	taken := func(id string) bool {
		return id == "" || slices.ContainsFunc(a.response.Content, func(b llm.Block) bool { return b.CallID == id })
	}
	for taken(id) {
		id = fmt.Sprintf("call-%d", index)
		index++
	}
	return id
}

func (a *assembly) tell(d llm.Delta) {
	if a.say != nil {
		a.say(d)
	}
}

// finish returns the whole response.
func (a *assembly) finish() (llm.Response, error) {
	a.endHalves()
	r := a.response
	calls := len(a.calls) > 0
	switch openai.FinishReason(a.finished) {
	case openai.FinishReasonLength:
		r = r.Interrupted()
		r.Finish = llm.FinishMaxTokens
		return r, nil
	case openai.FinishReasonStop, openai.FinishReasonToolCalls, openai.FinishReasonFunctionCall, "":
		// Servers say stop after tool calls too.
		r.Finish = llm.FinishStop
		if calls {
			r.Finish = llm.FinishToolCalls
		}
	default:
		return llm.Response{}, &llm.Error{
			Code: strings.ToUpper(a.finished), Message: "model stopped: " + a.finished,
		}
	}
	if len(r.Content) == 0 {
		return llm.Response{}, &llm.Error{Code: llm.CodeEmptyResponse, Message: "model returned a completed response with no content"}
	}
	for _, b := range r.Content {
		if b.Type == llm.ToolCallBlock && b.Name == "" {
			return llm.Response{}, &llm.Error{Code: llm.CodeMalformedResponse, Message: "model returned a tool call without a name"}
		}
	}
	return r, nil
}
