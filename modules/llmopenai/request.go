package llmopenai

import (
	"errors"
	"fmt"
	"math"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"dsh/modules/llm"
)

// request returns r as the protocol has it.
func request(r llm.Request, where place) (openai.ChatCompletionRequest, error) {
	if len(r.Messages) == 0 {
		return openai.ChatCompletionRequest{}, errors.New("a request without messages")
	}
	body := openai.ChatCompletionRequest{
		Model: where.target.Model, ReasoningEffort: r.ReasoningEffort,
		Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	}
	if where.baseURL == families[1].baseURL {
		body.MaxCompletionTokens = r.MaxTokens
	} else {
		//lint:ignore SA1019 OpenAI's own models alone know the newer name
		body.MaxTokens = r.MaxTokens
	}
	if r.Temperature != nil {
		body.Temperature = float32(*r.Temperature)
		if body.Temperature == 0 {
			body.Temperature = math.SmallestNonzeroFloat32 // the library leaves 0 out
		}
	}
	if r.System != "" {
		body.Messages = append(body.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
	}
	for _, m := range r.Messages {
		sent, err := message(m)
		if err != nil {
			return openai.ChatCompletionRequest{}, err
		}
		body.Messages = append(body.Messages, sent)
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Parameters},
		})
	}
	return body, nil
}

func message(m llm.Message) (openai.ChatCompletionMessage, error) {
	switch m.Role {
	case llm.RoleUser:
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text()}, nil
	case llm.RoleTool:
		if len(m.Content) != 1 {
			return openai.ChatCompletionMessage{}, fmt.Errorf("a tool message has %d blocks, want 1", len(m.Content))
		}
		content := m.Content[0].Text
		if content == "" {
			content = "(no output)"
		}
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: content, ToolCallID: m.Content[0].CallID}, nil
	case llm.RoleAssistant:
		sent := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text()}
		var reasoning strings.Builder
		for _, b := range m.Content {
			switch b.Type {
			case llm.ReasoningBlock:
				reasoning.WriteString(b.Text)
			case llm.ToolCallBlock:
				sent.ToolCalls = append(sent.ToolCalls, openai.ToolCall{
					ID: b.CallID, Type: openai.ToolTypeFunction,
					Function: openai.FunctionCall{Name: b.Name, Arguments: b.Arguments},
				})
			}
		}
		sent.ReasoningContent = reasoning.String()
		return sent, nil
	}
	return openai.ChatCompletionMessage{}, fmt.Errorf("a message in the role %q", m.Role)
}
