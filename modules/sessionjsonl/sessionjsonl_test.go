package sessionjsonl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/testkit"
	"dsh/modules/llm"
	"dsh/modules/sandbox"
	"dsh/modules/session"
	"dsh/modules/session/sessiontest"
	"dsh/modules/sessionjsonl"
	"dsh/modules/shell"
	"dsh/modules/shellenv"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, func(t testing.TB) func() session.Store {
		root := filepath.Join(t.TempDir(), "sessions")
		return func() session.Store { return start(t, root).Store }
	})
}

// start returns a started row over root, which stops with the test.
func start(t testing.TB, root string) sessionjsonl.Result {
	t.Helper()
	return startWith(t, sessionjsonl.Params{Config: sessionjsonl.Config{Root: root}, Logger: slog.New(slog.DiscardHandler)})
}

func startWith(t testing.TB, p sessionjsonl.Params) sessionjsonl.Result {
	t.Helper()
	r, err := sessionjsonl.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Runner.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return r
}

func create(t testing.TB, s session.Store, cwd string, events ...session.Data) session.Session {
	t.Helper()
	open, err := s.Create(t.Context(), session.New{CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	add(t, open, events...)
	return open
}

func add(t testing.TB, to session.Session, events ...session.Data) {
	t.Helper()
	for _, d := range events {
		if _, err := to.Append(d); err != nil {
			t.Fatalf("Append %s: %v", d.Type(), err)
		}
	}
}

func turn(n int) []session.Data {
	m := llm.UserText("list <the> files & \"more\"")
	m.ID = "m1"
	return []session.Data{
		&session.TurnStart{Turn: n}, &session.StepStart{Turn: n, Step: 1}, &session.UserMessage{Message: m},
		&session.StepEnd{Turn: n, Step: 1}, &session.TurnEnd{Turn: n, Reason: session.Reason{Kind: session.EndCompleted}},
	}
}

func TestFileIsAHeaderAndALineForEachEvent(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a", "sessions")
	s := start(t, root).Store
	open := create(t, s, "/work place")
	if _, err := os.Lstat(root); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the root is there before the first event: %v", err)
	}
	add(t, open, turn(1)...)
	id := open.Header().ID
	if !regexp.MustCompile(`^session-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
	text, err := os.ReadFile(filepath.Join(root, id, "session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`"(createdAt|time)":[0-9]{13}`).ReplaceAllString(string(text), `"$1":T`)
	want := `{"type":"session","version":1,"id":"` + id + `","createdAt":T,"cwd":"/work place"}
{"type":"turn/start","seq":0,"time":T,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":T,"data":{"turn":1,"step":1}}
{"type":"user/message","seq":2,"time":T,"data":{"id":"m1","role":"user","content":[{"type":"text","text":"list <the> files & \"more\""}],"source":{"kind":"user"}}}
{"type":"step/end","seq":3,"time":T,"data":{"turn":1,"step":1}}
{"type":"turn/end","seq":4,"time":T,"data":{"turn":1,"reason":{"kind":"completed"}}}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "session.jsonl": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(root, id, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has the mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestDefaultRootIsInDshHome(t *testing.T) {
	t.Setenv("DSH_HOME", t.TempDir())
	open := create(t, start(t, "").Store, "/", turn(1)...)
	if _, err := os.Stat(filepath.Join(os.Getenv("DSH_HOME"), "sessions", open.Header().ID, "session.jsonl")); err != nil {
		t.Error(err)
	}
}

func TestCommandsLearnTheFileOfTheirSessionAlone(t *testing.T) {
	t.Parallel()
	env, err := shellenv.New(shellenv.Params{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	r, err := sessionjsonl.New(sessionjsonl.Params{
		Config: sessionjsonl.Config{Root: root}, Logger: slog.New(slog.DiscardHandler), Facts: env.Facts,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := create(t, r.Store, "/")
	for id, want := range map[string]string{
		open.Header().ID: filepath.Join(root, open.Header().ID, "session.jsonl"), "": "", "other": "",
	} {
		facts, err := env.Facts.Collect(t.Context(), shell.Execution{SessionID: id})
		if err != nil || facts["DSH_SESSION_JSONL"] != want {
			t.Errorf("session %q: got %q, %v, want %q", id, facts["DSH_SESSION_JSONL"], err, want)
		}
	}
	if err := r.Runner.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := env.Facts.Declared(); len(got) != 0 {
		t.Errorf("after the stop %v is still declared", got)
	}
	if _, err := open.Append(&session.TurnStart{Turn: 1}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("Append after the stop: %v", err)
	}
	if _, err := r.Store.Create(t.Context(), session.New{CWD: "/"}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("Create after the stop: %v", err)
	}
}

func TestSandboxModeOfASessionIsItsLastChoice(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	r := start(t, root)
	open := create(t, r.Store, "/", &session.SandboxMode{Mode: sandbox.DangerFullAccess}, &session.SandboxMode{Mode: sandbox.ReadOnly})
	undecided := create(t, r.Store, "/", turn(1)...)
	for name, from := range map[string]sandbox.Overrides{"its host": r.Overrides, "another": start(t, root).Overrides} {
		if mode, ok, err := from.SandboxMode(t.Context(), open.Header().ID); mode != sandbox.ReadOnly || !ok || err != nil {
			t.Errorf("%s: %q, %v, %v", name, mode, ok, err)
		}
		for _, id := range []string{undecided.Header().ID, "nobody"} {
			if mode, ok, err := from.SandboxMode(t.Context(), id); mode != "" || ok || err != nil {
				t.Errorf("%s, session %s: %q, %v, %v", name, id, mode, ok, err)
			}
		}
	}
	damage(t, root, undecided.Header().ID, func(text string) string { return strings.Replace(text, `"seq":2`, `"seq":9`, 1) })
	if mode, _, err := start(t, root).Overrides.SandboxMode(t.Context(), undecided.Header().ID); err == nil {
		t.Errorf("a damaged log says %q", mode)
	}
}

// damage changes a stored log.
func damage(t testing.TB, root, id string, change func(string) string) {
	t.Helper()
	path := filepath.Join(root, id, "session.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTornEndIsCutOffAndSaidSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tail string }{
		"half a line":             {`{"type":"turn/start","seq":5,"ti`},
		"a line without its end":  {`{"type":"turn/start","seq":5,"time":1,"data":{"turn":2}}`},
		"a line that is no JSON":  {"\x00\x00\x00\x00\n"},
		"zeros":                   {strings.Repeat("\x00", 200_000)},
		"a gap":                   {`{"type":"turn/start","seq":7,"time":1,"data":{"turn":2}}` + "\n"},
		"a line after a bad line": {"garbage\n" + `{"type":"turn/start","seq":5,"time":1,"data":{"turn":2}}` + "\n"},
		"no data":                 {`{"type":"turn/start","seq":5,"time":1,"data":null}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			open := create(t, start(t, root).Store, "/", turn(1)...)
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
			id := open.Header().ID
			var whole string
			damage(t, root, id, func(text string) string { whole = text; return text + c.tail })

			var said bytes.Buffer
			s := startWith(t, sessionjsonl.Params{Config: sessionjsonl.Config{Root: root}, Logger: slog.New(slog.NewTextHandler(&said, nil))}).Store
			log, err := s.Read(t.Context(), id)
			if err != nil || log.Torn != int64(len(c.tail)) || len(log.Events) != 5 {
				t.Errorf("Read: %d events, %d bytes torn, %v, want 5 and %d", len(log.Events), log.Torn, err, len(c.tail))
			}
			again, err := s.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := again.Recovery(); got != (session.Recovery{CutBytes: int64(len(c.tail))}) {
				t.Errorf("Recovery is %+v", got)
			}
			if !strings.Contains(said.String(), "repaired a session log") {
				t.Errorf("the host's log says %q", said.String())
			}
			damage(t, root, id, func(text string) string {
				if text != whole {
					t.Errorf("the file is %q", text)
				}
				return text
			})
			add(t, again, turn(2)...)
		})
	}
}

func TestDamageBeforeTheLastTurnsEndIsAnErrorWithItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(string) string
		line      int
		contained string
	}{
		"a byte of a line":   {replace(`"seq":1,`, `"seq":1`), 3, "invalid"},
		"a missing line":     {replace(`{"type":"step/start","seq":1`, "\n"+`{"type":"step/start","seq":1`), 3, ""},
		"a gap":              {replace(`"seq":2`, `"seq":3`), 4, "seq gap: got 3, expected 2"},
		"a gap at the end":   {replace(`"seq":4`, `"seq":5`), 6, "seq gap"},
		"a wrong step":       {replace(`"turn":1,"step":1`, `"turn":1,"step":2`), 3, "step 2, want 1"},
		"an unknown type":    {replace(`step/start`, `step/begin`), 3, `event type "step/begin" is unknown to this dsh`},
		"a newer version":    {replace(`"version":1`, `"version":2`), 1, "log format v2"},
		"an older version":   {replace(`"version":1`, `"version":0`), 1, "log format v0"},
		"another id":         {replace(`"id":"session-`, `"id":"session-x`), 1, "the header's id is"},
		"a relative cwd":     {replace(`"cwd":"/"`, `"cwd":"a"`), 1, "absolute"},
		"no header":          {func(s string) string { return s[strings.Index(s, "\n")+1:] }, 1, "not a session header"},
		"an empty file":      {func(string) string { return "" }, 1, "empty or header-less"},
		"a torn header":      {func(s string) string { return s[:20] }, 1, "empty or header-less"},
		"a header of no use": {func(s string) string { return "{}\n" + s }, 1, "not a session header"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			open := create(t, start(t, root).Store, "/", turn(1)...)
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
			id := open.Header().ID
			var changed string
			damage(t, root, id, func(text string) string { changed = c.change(text); return changed })
			s := start(t, root).Store
			for range 2 { // the first attempt leaves no lock behind
				_, err := s.Open(t.Context(), id)
				d, is := errors.AsType[*session.DamageError](err)
				if !is || d.Line != c.line || d.ID != id || !strings.Contains(err.Error(), c.contained) {
					t.Errorf("got %v, want line %d with %q", err, c.line, c.contained)
				}
			}
			damage(t, root, id, func(text string) string {
				if text != changed {
					t.Errorf("the file became %q", text)
				}
				return text
			})
			list, err := s.List(t.Context())
			if err != nil || len(list) != 1 || list[0].ID != id || c.line == 1 && list[0].Err == nil {
				t.Errorf("List: %+v, %v", list, err)
			}
		})
	}
}

func replace(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

func TestFailedWriteLeavesTheLogAsItWas(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open := create(t, start(t, filepath.Join(root, "sessions")).Store, "/")
	if err := os.WriteFile(filepath.Join(root, "sessions"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Append(&session.TurnStart{Turn: 1}); err == nil || !strings.Contains(err.Error(), "sessions") {
		t.Fatalf("Append where no directory can be made: %v", err)
	}
	if got := open.Events(); len(got) != 0 {
		t.Errorf("the session has %v", got)
	}
	// Once there is room, the session goes on from where it was.
	if err := os.Remove(filepath.Join(root, "sessions")); err != nil {
		t.Fatal(err)
	}
	add(t, open, turn(1)...)
}

func TestEventThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	open := create(t, start(t, t.TempDir()).Store, "/")
	_, err := open.Append(&session.UserMessage{Message: llm.UserText(strings.Repeat("x", session.MaxEventBytes))})
	if _, is := errors.AsType[*session.InvalidError](err); !is {
		t.Errorf("got %v, want an *InvalidError", err)
	}
}

func TestListPassesOverWhatIsNoSession(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"empty", ".hidden", "a b"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := start(t, root).Store.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	m := sessionjsonl.Module()
	if m.Name() != "session-jsonl" || len(m.Provides()) != 2 || len(m.Needs()) != 1 || !m.Supports("win32") {
		t.Errorf("%q provides %v and needs %v", m.Name(), m.Provides(), m.Needs())
	}
	for _, root := range []string{"/a\x00", "sessions", "~/sessions"} {
		if err := (sessionjsonl.Config{Root: root}).Validate(); err == nil {
			t.Errorf("the root %q is valid", root)
		}
	}
}

// FuzzReadingALog opens whatever a file may hold: it is refused, or the session can go on and is read back as it went.
func FuzzReadingALog(f *testing.F) {
	const id = "session-x"
	header := `{"type":"session","version":1,"id":"session-x","createdAt":1,"cwd":"/"}` + "\n"
	for _, tail := range []string{
		"", "{", `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n",
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n" + `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}` + "\n" +
			`{"type":"assistant/message","seq":2,"time":1,"data":{"turn":1,"step":1,"message":{"id":"m","role":"assistant","content":[{"type":"tool-call","callId":"c","name":"bash"}]}}}` + "\n" +
			`{"type":"tool/call","seq":3,"time":1,"data":{"turn":1,"step":1,"callId":"c","name":"bash","arguments":""}}` + "\nx",
		"x\n" + `{"type":"turn/end","seq":4,"time":1,"data":{"turn":1}}` + "\n",
		`{"type":"compaction/start","seq":0,"time":1,"data":{"compactionId":"k","turn":null}}` + "\n",
		`{"type":"a/b","seq":0,"time":1,"data":[]}` + "\n",
	} {
		f.Add([]byte(header + tail))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, id, "session.jsonl"), file, 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, root).Store
		if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
			t.Fatalf("List: %v, %v", list, err)
		}
		if log, err := s.Read(t.Context(), id); err == nil {
			if err := log.WriteText(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
		}
		open, err := s.Open(t.Context(), id)
		if err != nil {
			if _, is := errors.AsType[*session.DamageError](err); !is {
				t.Fatalf("Open: %v", err)
			}
			return
		}
		p := open.Position()
		if p.Turn != 0 || p.Step != 0 || len(p.Unanswered) != 0 {
			t.Fatalf("a resumed session is at %+v", p)
		}
		add(t, open, turn(p.Turns+1)...)
		log, err := s.Read(t.Context(), id)
		if err != nil || log.Torn != 0 {
			t.Fatalf("Read: %v, %d bytes torn", err, log.Torn)
		}
		want, _ := json.Marshal(open.Events())
		got, _ := json.Marshal(log.Events)
		if !bytes.Equal(got, want) {
			t.Fatalf("read back %s, want %s", got, want)
		}
	})
}
