package llmopenai_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/modules/llm"
)

func wantCode(t *testing.T, err error, code string) *llm.Error {
	t.Helper()
	e, is := errors.AsType[*llm.Error](err)
	if !is || e.Code != code {
		t.Fatalf("got error %v (%+v), want code %s", err, e, code)
	}
	return e
}

func TestPiecesMayBreakAnywhere(t *testing.T) {
	t.Parallel()
	whole := ": keep-alive\n\n" + "event: message\nid: 1\n" + content("é\U0001F600") + strings.Repeat(": keep-alive\n\n", 1000) + "\r\n" +
		delta(`"content":"\u00e9!","role":"assistant"`) + delta(`"content":null`) + delta(`"content":""`) + finish("stop") +
		event(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":3}}}`) + done
	for _, size := range []int{1, 7, 1 << 20} {
		var pieces []string
		for rest := range slices.Chunk([]byte(whole), size) {
			pieces = append(pieces, string(rest))
		}
		if size == 1 {
			pieces = append(slices.Clone(pieces[:200]), strings.Join(pieces[200:], ""))
		}
		r, err := start(t, config(serve(t, stream(pieces...)).url)).Generate(t.Context(), ask())
		if err != nil {
			t.Fatalf("%d bytes at a time: %v", size, err)
		}
		want := llm.Response{
			Content: []llm.Block{{Type: llm.TextBlock, Text: "é\U0001F600é!"}}, Finish: llm.FinishStop,
			Usage:  &llm.Usage{InputTokens: 40, CacheReadTokens: 60, OutputTokens: 7, ReasoningTokens: 3},
			Target: r.Target,
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%d bytes at a time (-want +got):\n%s", size, diff)
		}
	}
}

func TestRefusalsHaveTheirCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    string
		message string
	}{
		"a wrong key":        {status(401, `{"error":{"message":"Incorrect API key"}}`), llm.CodeAuth, "Incorrect API key"},
		"a forbidden model":  {status(403, `{"error":{"message":"no"}}`), llm.CodeAuth, "no"},
		"a wrong model":      {status(404, `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`), "HTTP_404", "does not exist"},
		"too long a context": {status(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`), llm.CodeContextWindow, "too long"},
		"a bad request":      {status(400, `{"error":{"message":"bad tools"}}`), llm.CodeInvalidRequest, "bad tools"},
		"no money":           {status(402, `{"error":{"message":"Insufficient Balance"}}`), llm.CodeQuota, "Insufficient"},
		"text for an error":  {status(400, `{"error":"just text"}`), llm.CodeInvalidRequest, "just text"},
		"a page":             {status(404, "<html>\n<h1>Not  found</h1>"), "HTTP_404", "<html> <h1>Not found</h1>"},
		"an empty body":      {status(418, ""), "HTTP_418", "model API error (HTTP 418)"},
		"a page that is ok":  {status(200, `<html>`, "Content-Type", "text/html"), llm.CodeMalformedResponse, "instead of a stream"},
		"another address":    {status(307, ``, "Location", "/elsewhere"), llm.CodeInvalidRequest, "set baseURL"},
		"no JSON":            {stream(content("a"), event("{broken")), llm.CodeMalformedResponse, "malformed SSE payload: {broken"},
		"a filter":           {stream(content("a"), finish("content_filter"), done), "CONTENT_FILTER", "model stopped: content_filter"},
		"a nameless call":    {stream(delta(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]`), finish("tool_calls"), done), llm.CodeMalformedResponse, "without a name"},
		"an endless line":    {stream(content(strings.Repeat("x", 9<<20))), llm.CodeMalformedResponse, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handler)
			r, err := start(t, config(s.url)).Generate(t.Context(), ask())
			if e := wantCode(t, err, c.code); !strings.Contains(e.Message, c.message) {
				t.Errorf("the message is %q, want %q", e.Message, c.message)
			}
			if s.calls() != 1 || len(r.Content) != 0 {
				t.Errorf("%d calls, want 1; the response is %v", s.calls(), r.Content)
			}
		})
	}
}

func TestFailuresThatPassAreTriedAgain(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		stream(content("half a re"))(w, nil)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    string
	}{
		"an overloaded server":           {status(503, `overloaded`), llm.CodeServer},
		"a hang-up":                      {hangUp, llm.CodeTransport},
		"an end without a word":          {stream(content("half a re")), llm.CodeStreamClosed},
		"an end within a line":           {stream(content("half"), `data: {"choices":[{"ind`), llm.CodeStreamClosed},
		"nothing said":                   {stream(finish("stop"), done), llm.CodeEmptyResponse},
		"a stream without anything":      {stream(done), llm.CodeEmptyResponse},
		"an error in the stream":         {stall(content("half")+event(`{"error":{"message":"upstream failed","code":502}}`), nil), llm.CodeServer},
		"an error that comes as a text":  {stall(event(`{"error": "overloaded"}`), nil), llm.CodeServer},
		"a limit that comes in a stream": {stall(event(`{"error":{"message":"Rate limit reached","code":429}}`), nil), llm.CodeRateLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handler, stream(content("whole"), finish("stop"), done))
			r := ask()
			var told []string
			r.Retrying = func(retry llm.Retry) error {
				told = append(told, retry.Failure.Code)
				return nil
			}
			got, err := start(t, config(s.url)).Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, []string{c.code}) || got.Content[0].Text != "whole" || s.calls() != 2 {
				t.Errorf("told %v, got %v in %d calls", told, got.Content, s.calls())
			}
		})
	}
}

func TestServerThatIsNotThereIsATransportFailure(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := config("http://" + address)
	c.MaxRetries = 0
	_, err = start(t, c).Generate(t.Context(), ask())
	if e := wantCode(t, err, llm.CodeTransport); !strings.Contains(e.Message, address) {
		t.Errorf("the message is %q", e.Message)
	}
}

func TestHangUpWithoutDoneIsAnEndIfTheModelHadFinished(t *testing.T) {
	t.Parallel()
	r, err := start(t, config(serve(t, stream(content("all"), finish("stop"))).url)).Generate(t.Context(), ask())
	if err != nil || r.Content[0].Text != "all" {
		t.Errorf("got %v, %v", r.Content, err)
	}
}

func TestStreamThatStandsStillIsGivenUp(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 1)
	c := config(serve(t, stall(content("half"), gone)).url)
	c.StreamIdleTimeoutMs, c.MaxRetries = 200, 0
	_, err := start(t, c).Generate(t.Context(), ask())
	if e := wantCode(t, err, llm.CodeTimeout); !strings.Contains(e.Message, "200 ms") {
		t.Errorf("the message is %q", e.Message)
	}
	<-gone
}

func TestCommentsKeepAStreamAlive(t *testing.T) {
	t.Parallel()
	c := config(serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 20 { // twice the time that it may stand still
			stream(": keep-alive\n\n")(w, r)
			time.Sleep(100 * time.Millisecond)
		}
		stream(content("late"), finish("stop"), done)(w, r)
	}).url)
	c.StreamIdleTimeoutMs, c.MaxRetries = 1000, 0
	if _, err := start(t, c).Generate(t.Context(), ask()); err != nil {
		t.Error(err)
	}
}

func TestCancellationEndsTheStreamAtTheServer(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 1)
	m := start(t, config(serve(t, stall(content("half"), gone)).url))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	r := ask()
	r.Stream = func(llm.Delta) { cancel(enough) }
	got, err := m.Generate(ctx, r)
	wantCode(t, err, llm.CodeAborted)
	if !errors.Is(err, enough) || len(got.Content) != 1 || got.Content[0].Text != "half" {
		t.Errorf("got %v, %v", got.Content, err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the server still has the connection")
	}
}

func TestLengthDropsCallsThatAreIncomplete(t *testing.T) {
	t.Parallel()
	r, err := start(t, config(serve(t, stream(content("I will"),
		delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"comm"}}]`), finish("length"), done)).url)).Generate(t.Context(), ask())
	if err != nil || r.Finish != llm.FinishMaxTokens || len(r.Content) != 1 || r.Content[0].Text != "I will" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestCallsWithoutIndexOrIDAreToldApart(t *testing.T) {
	t.Parallel()
	for name, pieces := range map[string][]string{
		"no index": {
			delta(`"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{"}}]`), delta(`"tool_calls":[{"function":{"arguments":"}"}}]`),
			delta(`"tool_calls":[{"id":"b","function":{"name":"two","arguments":"{}"}}]`),
		},
		"no id":       {delta(`"tool_calls":[{"index":0,"function":{"name":"one","arguments":"{}"}},{"index":1,"function":{"name":"two","arguments":"{}"}}]`)},
		"the same id": {delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"two","arguments":"{}"}}]`)},
	} {
		r, err := start(t, config(serve(t, stream(append(pieces, finish("stop"), done)...)).url)).Generate(t.Context(), ask())
		if err != nil || len(r.Content) != 2 || r.Finish != llm.FinishToolCalls {
			t.Errorf("%s: got %+v, %v", name, r, err)
			continue
		}
		a, b := r.Content[0], r.Content[1]
		if a.Name != "one" || b.Name != "two" || a.Arguments != "{}" || b.Arguments != "{}" || a.CallID == b.CallID || b.CallID == "" {
			t.Errorf("%s: got %+v", name, r.Content)
		}
	}
}

func TestCharactersThatAreCutInHalfAreJoined(t *testing.T) {
	t.Parallel()
	const high, low = `\ud83d`, `\ude00`
	r := ask()
	var streamed string
	r.Stream = func(d llm.Delta) {
		if d.Type == llm.TextBlock {
			streamed += d.Text
		}
	}
	got, err := start(t, config(serve(t, stream(
		delta(`"content":"a`+high+`"`), delta(`"reasoning_content":"between`+high+low+`"`), delta(`"content":"`+low+`b`+low+`c`+high+`d\\ud83d`+high+`"`),
		delta(`"tool_calls":[{"index":0,"id":"i","function":{"name":"bash","arguments":"{\"a\":\"`+high+`"}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"`+low+`\"}"}}]`), finish("tool_calls"), done)).url)).Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	const text = "a\U0001F600b\uFFFDc\uFFFDd\\ud83d\uFFFD"
	want := []llm.Block{
		{Type: llm.TextBlock, Text: text},
		{Type: llm.ReasoningBlock, Text: "between\U0001F600"},
		{Type: llm.ToolCallBlock, CallID: "i", Name: "bash", Arguments: "{\"a\":\"\U0001F600\"}"},
	}
	if diff := cmp.Diff(want, got.Content); diff != "" || streamed != text {
		t.Errorf("streamed %q (-want +got):\n%s", streamed, diff)
	}
}
