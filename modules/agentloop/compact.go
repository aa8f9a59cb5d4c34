package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dsh/modules/llm"
	"dsh/modules/session"
)

const (
	fullAt           = 0.8  // of the context window: then the conversation is summarised
	keepAfter        = 0.16 // of the context window: what stays as it is
	compactionTries  = 2
	summaryMaxTokens = 8192

	// A tool's result that is longer than clipAt characters is clipped where it is only to be summarised.
	clipAt, clipHead, clipTail = 8192, 4096, 1024
)

const clipMark = "\n\n[... tool result middle pruned ...]\n\n"

const summaryInstruction = `Write a checkpoint of the conversation so far, for yourself: it will replace the conversation, and the work goes on from it alone. Answer with Markdown in English and make no tool calls. Keep identifiers, paths, commands, numbers and error texts verbatim. If the conversation contains a <compacted-summary>, merge it in. Use exactly these sections, with "(none)" for what is empty:

## Primary Request and Intent
## Key Technical Concepts
## Files and Code
## Errors and Fixes
## Pending Jobs
## Current Work
## Next Step
## Critical Context`

const summaryPreamble = "This is an automatic checkpoint: a summary of the conversation before this point, which it replaces. Treat it as " +
	"established background, and continue the work without acknowledging it.\n\n"

var summarySource = llm.Source{Kind: llm.SourcePlugin, Plugin: "agent-loop", Form: "summary"}

// relieve makes room when the conversation nearly fills the context window. When that fails the turn goes on all the
// same: the model may still find room. The error is that of the log.
func (t *turn) relieve(ctx context.Context, told told) error {
	window := float64(t.config.ContextWindow)
	limit := int(window * fullAt)
	for try := 0; limit > 0 && t.estimate(told) >= limit; try++ {
		err := fmt.Errorf("still above the threshold of %d tokens after %d attempts", limit, try)
		if try < compactionTries {
			err = t.compact(ctx, told, int(window*keepAfter))
		}
		var log *logError
		switch {
		case errors.As(err, &log):
			return err
		case ctx.Err() != nil:
			return nil
		case err != nil:
			t.loop.log.Warn("step compaction failed; continuing the turn", "error", err)
			return nil
		}
	}
	return nil
}

// compact has the model summarise the conversation but for its last messages, of at most retain tokens.
func (t *turn) compact(ctx context.Context, told told, retain int) error {
	region := t.region(retain)
	if len(region) == 0 {
		return errors.New("there is nothing to summarise")
	}
	id, turn := "compaction-"+newID(), t.number
	if err := t.append(&session.CompactionStart{CompactionID: id, Turn: &turn}); err != nil {
		return err
	}
	end := session.CompactionEnd{CompactionID: id}
	summary, err := t.summarise(ctx, told, region)
	if err == nil {
		summary.CompactionID = id
		err = t.append(&summary)
	}
	var log *logError
	var failure *llm.Error
	switch {
	case errors.As(err, &log):
		return err
	case errors.As(err, &failure):
		end.Error = failure
	case err != nil:
		end.Error = &llm.Error{Code: llm.CodeUnknown, Message: err.Error()}
	}
	return errors.Join(err, t.append(&end))
}

// region returns the messages that are to be replaced: all before a tail of at most retain tokens that does not begin
// with a tool's result; or all there are, when the results of one step are most of them.
func (t *turn) region(retain int) []session.Node {
	nodes := t.s.Surface()
	n, tail := len(nodes), 0
	for n > 0 {
		tail += messageTokens(nodes[n-1].Message)
		if tail > retain {
			break
		}
		n--
	}
	for n > 0 && n < len(nodes) && nodes[n].Message.Role == llm.RoleTool {
		n--
	}
	if nodesTokens(nodes[:n]) < nodesTokens(nodes)/4 {
		n = len(nodes)
	}
	if n == 1 && nodes[0].Message.Source == summarySource {
		return nil
	}
	return nodes[:n]
}

func (t *turn) summarise(ctx context.Context, told told, region []session.Node) (session.CompactionSummary, error) {
	messages := make([]llm.Message, 0, len(region)+1)
	for _, n := range region {
		messages = append(messages, clipped(n.Message))
	}
	response, err := t.model.Generate(ctx, llm.Request{
		Model: t.in.Model, System: told.System, Tools: told.tools,
		Messages: append(messages, llm.UserText(summaryInstruction)), MaxTokens: summaryMaxTokens,
	})
	if err != nil {
		return session.CompactionSummary{}, err
	}
	text := strings.TrimSpace(response.Message().Text())
	switch {
	case response.Finish == llm.FinishMaxTokens:
		return session.CompactionSummary{}, errors.New("summarization truncated at the token cap (incomplete checkpoint)")
	case text == "":
		return session.CompactionSummary{}, errors.New("summarization produced no text summary content")
	}
	m := saying(summaryPreamble+"<compacted-summary>\n"+text+"\n</compacted-summary>", summarySource)
	if a, b := messageTokens(m), nodesTokens(region); a >= b {
		return session.CompactionSummary{}, fmt.Errorf(
			"summary is not smaller than the shadowed content (%d estimated framed tokens >= %d)", a, b)
	}
	return session.CompactionSummary{
		Shadowed: session.Range{Start: region[0].Seq, End: region[len(region)-1].Seq}, Message: m,
		Provider: response.Target.Provider, Model: response.Target.Model, Usage: response.Usage,
	}, nil
}

// clipped returns m with the middle of a long tool result taken out.
func clipped(m llm.Message) llm.Message {
	if m.Role != llm.RoleTool {
		return m
	}
	b := m.Content[0]
	if runes := []rune(b.Text); len(runes) > clipAt {
		b.Text = string(runes[:clipHead]) + clipMark + string(runes[len(runes)-clipTail:])
		m.Content = []llm.Block{b}
	}
	return m
}
