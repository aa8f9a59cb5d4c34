package jsexpr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dsh/internal/jsexpr"
)

func TestWhatAnExpressionCannotDo(t *testing.T) {
	g := machine("linux", map[string]string{"SECRET": "hunter2", "OTHER": "{hunter2"})
	for _, c := range []struct{ name, text, want string }{
		{"loop for ever", "for (;;) {}", "did not end within 100 ms"},
		{"loop for ever in a getter of its result", "({get a() { for (;;) {} }})", "did not end within 100 ms"},
		{"loop for ever and catch", "for (;;) { try { for (;;) {} } catch {} }", "did not end within 100 ms"},
		{"recurse for ever", "(function f() { return f() })()", "recurses too deep"},
		{"give more than fits", "'x'.repeat(70000)", "gave more than 64 KiB"},
		{"give many small values", "Array(20000).fill('abc')", "gave more than 64 KiB"},
		{"take memory in one step", "'x'.repeat(2 ** 30)", "RangeError"},
		{"pad without end", "'x'.padStart(2 ** 30)", "RangeError"},
		{"take memory in an array", "Array(2 ** 31).fill(0)", "RangeError"},
		{"take memory in a buffer", "new Uint8Array(2 ** 31).fill(1)", "RangeError"},
		{"take memory bit by bit", "let s = 'x'; const a = []; for (;;) { a.push(s += s.slice(0, 1e6)) }", "the expression "},
		{"be endless text", "'" + strings.Repeat("x", 17<<10) + "'", "longer than 16 KiB"},
		{"nest parentheses without end", strings.Repeat("(", 16<<10), "the expression "},
		{"be empty", " ", "is empty"},
		{"use a name from elsewhere", "ctx.x", `uses ctx, which does not exist here`},
		{"use an unknown member and catch", "try { process.argv } catch { 1 }", "uses process.argv, which does not exist here"},
		{"give what contains itself", "let a = []; a[0] = a; a", "contains itself"},
		{"give a function", "x => x", "gave a function"},
		{"give no number", "Number('x')", "gave NaN"},
		{"throw", "throw new TypeError('bad')", "threw TypeError: bad"},
		{"throw text with newlines", "throw new Error('a\\n b')", "threw Error: a b"},
		{"throw a secret", "throw new Error(process.env.SECRET)", "threw Error"},
		{"throw a secret as the name", "throw {name: process.env.SECRET}", "threw an error"},
		{"parse a secret", "JSON.parse(process.env.OTHER)", "threw SyntaxError"},
		{"use a secret as a member", "process[process.env.SECRET]", "uses a name that does not exist"},
		{"use a secret as a name", "eval(process.env.SECRET)", "uses a name that does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			_, err := jsexpr.Eval(c.text, &g)
			if err == nil {
				t.Fatal("got a value, want an error")
			}
			if e, ok := errors.AsType[*jsexpr.Error](err); !ok || e.Message == "" {
				t.Errorf("got %T, want a *jsexpr.Error", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the value of a variable is in %q", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestFromEnvIsSetOnlyWhenAVariableThatExistsWasRead(t *testing.T) {
	t.Parallel()
	g := machine("linux", map[string]string{"A": "x"})
	for text, want := range map[string]bool{
		"process.env.A": true, "process.env.B ?? 'd'": false, "process.env.B || process.env.A": true, "process.platform": false,
		"({...process.env})": true, "JSON.stringify(process.env)": true,
	} {
		r, err := jsexpr.Eval(text, &g)
		if err != nil || r.FromEnv != want {
			t.Errorf("%s: got %v, %v, want %v", text, r.FromEnv, err, want)
		}
	}
}

func TestAnExpressionSeesNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	g := machine("linux", nil)
	if _, err := jsexpr.Eval("globalThis.leak = 1; Array.prototype.leak = 2; Object.prototype.leak = 3", &g); err != nil {
		t.Fatal(err)
	}
	r, err := jsexpr.Eval("[typeof leak, typeof [].leak, typeof ({}).leak].join()", &g)
	if err != nil || r.Value != "undefined,undefined,undefined" {
		t.Errorf("got %v, %v", r.Value, err)
	}
}

func TestIntegralNumbersAreInts(t *testing.T) {
	t.Parallel()
	g := machine("linux", map[string]string{"PORT": "3080"})
	for text, want := range map[string]any{"Number(process.env.PORT)": 3080, "4 / 2": 2, "1e3": 1000, "1.5": 1.5, "2 ** 60": float64(1 << 60)} {
		if r, err := jsexpr.Eval(text, &g); err != nil || r.Value != want {
			t.Errorf("%s: got %v (%T), %v, want %v (%T)", text, r.Value, r.Value, err, want, want)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, text := range language {
		f.Add(text)
	}
	for _, text := range []string{
		"for (;;) {}", "'x'.repeat(1e9)", "[...Array(1e5).keys()]", "process.env[process.env.A]", "dshHomePath(...'abc')", "throw process.env.A",
		"with ({}) {}", "yield", "await 1", "import('x')", "`${", "/(/", "a\u2028b", "\xff", "new Proxy({}, {get() { throw 1 }})",
	} {
		f.Add(text)
	}
	g := machine("linux", map[string]string{"A": "hunter2hunter2"})
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		r, err := jsexpr.Eval(text, &g)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if err != nil && !strings.Contains(text, "hunter2") && strings.Contains(err.Error(), "hunter2hunter2") {
			t.Errorf("the value of a variable is in %q", err)
		}
		if err != nil && (r.Value != nil || strings.ContainsAny(err.Error(), "\n\r")) {
			t.Errorf("got %v with the error %q", r.Value, err)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	g := machine("linux", map[string]string{"A": "x"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsexpr.Eval("process.env.DSH_PERMISSION_MODE ?? 'workspace-write'", &g); err != nil {
			b.Fatal(err)
		}
	}
}
