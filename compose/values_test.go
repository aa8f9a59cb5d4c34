package compose_test

import (
	"errors"
	"strings"
	"testing"

	"dsh/compose"
)

// TestValuesThatAreNearlyRight is what people write for numbers, text and truth.
func TestValuesThatAreNearlyRight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ row, entry, want string }{
		{"bash", "config: {timeoutMs: 1.5}", "timeoutMs must be an integer, got 1.5"},
		{"bash", "config: {timeoutMs: '7'}", `timeoutMs must be an integer, got "7"`},
		{"bash", "config: {timeoutMs: 5s}", `timeoutMs must be an integer, got "5s"`},
		{"bash", "config: {timeoutMs: true}", "timeoutMs must be an integer, got true"},
		{"bash", "config: {timeoutMs: [1]}", "timeoutMs must be an integer, got a list"},
		{"bash", "config: {timeoutMs: 1e30}", "timeoutMs must be an integer, got 1e30"},
		{"bash", "config: {timeoutMs: !!js 1.5}", "timeoutMs must be an integer, and the expression gives 1.5"},
		{"bash", "config: {timeoutMs: !!js '`7`'}", `timeoutMs must be an integer, and the expression gives "7"`},
		{"bash", "config: {timeoutMs: !!js null}", "timeoutMs must be an integer, and the expression gives null"},
		{"bash", "config: {timeoutMs: !!js Number('x')}", "the expression gave NaN"},
		{"bash", "config: {graceMs: -1}", "graceMs must be positive, got -1"},
		{"bash", "config: {timeoutMs: 900000}", "timeoutMs must be at most maxTimeoutMs, which is 600000"},
		{"bash", "config: {limits: {memoryMax: 64k}}", `limits.memoryMax must be an integer, got "64k"`},
		{"bash", "config: {limits: {env: {A: 1}}}", "limits.env.A must be text, got 1"},
		{"bash", "config: {limits: 5}", "limits must be a mapping, got 5"},
		{"bash", "config: [1]", "config must be a mapping, got a list"},
		{"bash", "config: !!js 5", "config must be a mapping, and the expression gives 5"},
		{"bash", "config: {cwd: null}", "cwd must be text, got null"},
		{"bash", "config: {cwd: yes, timeoutMs: 0x10}", `timeoutMs must be an integer, got "0x10"`},
		{"bash", "disabled: no", `disabled must be true or false, got "no"`},
		{"bash", "disabled: 'true'", `disabled must be true or false, got "true"`},
		{"bash", "disabled: True", `disabled must be true or false, got "True"`},
		{"bash", "disabled: 0", "disabled must be true or false, got 0"},
		{"bash", "disabled: null", "disabled must be true or false, got null"},
		{"bash", "disabled: {a: 1}", "disabled must be true or false, got a mapping"},
		{"bash", "group: core", `group must be true or false, got "core"`},
		{"bash", "inject: !!js x", "inject cannot be an expression"},
		{"policy", "config: {mode: 0755}", `mode must be read-only, workspace-write or danger-full-access, got "0755"`},
		{"policy", "config: {mode: 755}", "mode must be text, got 755"},
		{"policy", "config: {mode: Read-Only}", `got "Read-Only"`},
		{"policy", "config: {Mode: read-only}", `unknown config key "Mode"`},
		{"policy", "config: {writableRoots: /x}", `writableRoots must be a list, got "/x"`},
		{"policy", "config: {writableRoots: [a, 1]}", "writableRoots[1] must be text, got 1"},
		{"policy", "config: {writableRoots: !!js '[`a`, 1]'}", "writableRoots[1] must be text, and the expression gives 1"},
		{"policy", "config: {strict: on}", `strict must be true or false, got "on"`},
		{"policy", "disabled: true\n  config: {strict: on}", `strict must be true or false, got "on"`},
		{"policy", "disabled: true\n  config: {sctrict: !!js x}", `unknown config key "sctrict"`},
	} {
		t.Run(c.entry, func(t *testing.T) {
			t.Parallel()
			_, err := plan(t, compose.FoldOptions{}, linux(), threeRows+"- insert: [{id: policy, name: sandbox-policy}]\n", "- id: "+c.row+"\n  "+c.entry+"\n")
			var faults *compose.Faults
			if !errors.As(err, &faults) || len(faults.Diagnostics()) != 1 {
				t.Fatalf("got %v, want one fault", err)
			}
			if d := faults.Diagnostics()[0]; d.Row != c.row || !strings.Contains(d.Message, c.want) || d.Place.Line == 0 {
				t.Errorf("got %v, want %s", d, c.want)
			}
		})
	}
}
