package llmopenai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"dsh/internal/testkit"
	"dsh/modules/llm"
	"dsh/modules/llm/llmtest"
	"dsh/modules/llmopenai"
	"dsh/modules/subprocess"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// server answers calls with handlers, one after the other; the last answers all further ones.
type server struct {
	url string

	mu       sync.Mutex
	handlers []http.HandlerFunc
	bodies   []map[string]any
	headers  []http.Header
}

func serve(t testing.TB, handlers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{handlers: handlers}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	s.url = h.URL
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.headers = append(s.headers, r.Header.Clone())
	h := s.handlers[0]
	if len(s.handlers) > 1 {
		s.handlers = s.handlers[1:]
	}
	s.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/chat/completions" {
		http.Error(w, "no such page", http.StatusNotFound)
		return
	}
	h(w, r)
}

func (s *server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// stream answers with pieces of a body, each of which is sent at once.
func stream(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

// event is a line of a stream.
func event(data string) string { return "data: " + data + "\n\n" }

const done = "data: [DONE]\n\n"

func delta(fields string) string {
	return event(`{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}`)
}

func finish(reason string) string {
	return event(`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`)
}

func content(text string) string {
	quoted, _ := json.Marshal(text)
	return delta(`"content":` + string(quoted))
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// stall answers with a piece and then nothing until the client has gone, which it tells gone.
func stall(piece string, gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(piece)(w, r)
		<-r.Context().Done()
		if gone != nil {
			gone <- struct{}{}
		}
	}
}

func config(url string) llmopenai.Config {
	c := llmopenai.DefaultConfig()
	c.BaseURL, c.Model = url, "m"
	return c
}

func start(t testing.TB, c llmopenai.Config) llm.Model {
	t.Helper()
	m, stop := startWith(t, c, &withholding{})
	t.Cleanup(stop)
	return m
}

func startWith(t testing.TB, c llmopenai.Config, runtime subprocess.Runtime) (m llm.Model, stop func()) {
	t.Helper()
	r, err := llmopenai.New(llmopenai.Params{Config: c, Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.Model, func() {
		if err := r.Runner.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
}

// withholding is a runtime that knows what is withheld.
type withholding struct {
	subprocess.Runtime
	names []string
}

func (w *withholding) Withhold(names ...string) func() {
	w.names = names
	return func() { w.names = nil }
}

func ask() llm.Request { return llm.Request{Messages: []llm.Message{llm.UserText("a task")}} }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, func(t testing.TB, steps ...llmtest.Step) llm.Model {
		var handlers []http.HandlerFunc
		for _, st := range steps {
			handlers = append(handlers, handler(st))
		}
		return start(t, config(serve(t, handlers...).url))
	})
}

// handler plays one step, a few bytes at a time.
func handler(st llmtest.Step) http.HandlerFunc {
	if st.Silent {
		return stall(": nothing yet\n\n", nil)
	}
	if st.Failure != nil {
		code := map[string]int{
			llm.CodeAuth: 401, llm.CodeInvalidRequest: 400, llm.CodeContextWindow: 400, llm.CodeQuota: 429, llm.CodeRateLimit: 429, llm.CodeServer: 500,
		}[st.Failure.Code]
		message := st.Failure.Message
		switch st.Failure.Code {
		case llm.CodeContextWindow:
			message = "This model's maximum context length is 10 tokens"
		case llm.CodeQuota:
			message = "You exceeded your current quota"
		}
		body := fmt.Sprintf(`{"error":{"message":%q,"type":"t","code":"c"}}`, message)
		if after := st.Failure.RetryAfterMs; after > 0 {
			return status(code, body, "Retry-After", strconv.FormatInt(after/1000, 10))
		}
		return status(code, body)
	}
	var body string
	calls, reason := 0, "stop"
	for _, b := range st.Content {
		for _, piece := range split(b.Text, b.Arguments) {
			quoted, _ := json.Marshal(piece)
			switch b.Type {
			case llm.ReasoningBlock:
				body += delta(`"reasoning_content":` + string(quoted))
			case llm.TextBlock:
				body += delta(`"content":` + string(quoted))
			}
		}
		if b.Type == llm.ToolCallBlock {
			body += delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"id-%d","type":"function","function":{"name":%q,"arguments":""}}]`, calls, calls, b.Name))
			for _, piece := range split(b.Arguments, "") {
				quoted, _ := json.Marshal(piece)
				body += delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, calls, quoted))
			}
			calls++
			reason = "tool_calls"
		}
	}
	return stream(body, finish(reason), done)
}

// split returns the first text that is not empty in a few pieces.
func split(texts ...string) []string {
	for _, text := range texts {
		runes := []rune(text)
		if n := len(runes); n > 3 {
			return []string{string(runes[:n/3]), string(runes[n/3 : n/2]), string(runes[n/2:])}
		} else if n > 0 {
			return []string{text}
		}
	}
	return nil
}

// patience is how long anything may take that takes no time on an idle machine.
const patience = 20 * time.Second
