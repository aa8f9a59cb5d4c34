package jsexpr_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/jsexpr"
	"dsh/internal/testkit"
)

// judge evaluates expressions in node, with nothing but the names of this package in their scope.
const judge = `
const vm = require('node:vm'), path = require('node:path');
const { expressions, globals } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const join = globals.Platform === 'win32' ? path.win32.join : path.posix.join;
const out = expressions.map((text) => {
	let denied = false;
	const members = Object.freeze({ platform: globals.Platform, arch: globals.Arch, env: Object.freeze(globals.Env), pid: globals.PID,
		execPath: globals.ExecPath, cwd: () => globals.Dir });
	const process = new Proxy(members, { get(target, key) {
		if (typeof key === 'string' && !(key in target)) denied = true;
		return target[key];
	} });
	const scope = vm.createContext({ process, dshHomePath: (...segments) => join(globals.Home, ...segments) });
	try {
		const value = vm.runInContext("'use strict'; undefined;" + text, scope, { timeout: 1000 });
		if (denied) return { fault: true };
		let finite = true;
		const json = JSON.stringify(value, (key, v) => {
			if (typeof v === 'number' && !Number.isFinite(v) || typeof v === 'function' || typeof v === 'symbol') finite = false;
			return v;
		});
		if (!finite) return { fault: true, truthy: !!value };
		return { undefined: value === undefined, truthy: !!value, value: json === undefined ? null : JSON.parse(json) };
	} catch {
		return { fault: true };
	}
});
console.log(JSON.stringify(out));
`

type verdict struct {
	Fault, Undefined, Truthy bool
	Value                    any
}

// inNode returns what node makes of the expressions; without node, the test is skipped.
func inNode(t *testing.T, expressions []string, g jsexpr.Globals) []verdict {
	t.Helper()
	node := testkit.NeedProgram(t, "node")
	input, err := json.Marshal(map[string]any{"expressions": expressions, "globals": g})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", judge)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(text, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// compare evaluates the expressions here and in node.
func compare(t *testing.T, expressions []string, g jsexpr.Globals) {
	t.Helper()
	for i, want := range inNode(t, expressions, g) {
		text := expressions[i]
		got, err := jsexpr.Eval(text, &g)
		if (err != nil) != want.Fault {
			t.Errorf("%s\n got %v, %v, node: fault %v, value %v", text, got.Value, err, want.Fault, want.Value)
			continue
		}
		if err != nil {
			continue
		}
		if got.Undefined != want.Undefined {
			t.Errorf("%s\n got undefined %v, node %v", text, got.Undefined, want.Undefined)
		}
		if d := cmp.Diff(want.Value, throughJSON(t, got.Value)); d != "" {
			t.Errorf("%s\n node - got +\n%s", text, d)
		}
		if truthy, err := jsexpr.Truthy(text, &g); err != nil || truthy != want.Truthy {
			t.Errorf("%s\n truthy: got %v, %v, node %v", text, truthy, err, want.Truthy)
		}
	}
}

func throughJSON(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func machine(platform string, env map[string]string) jsexpr.Globals {
	g := jsexpr.Globals{Platform: platform, Arch: "x64", Env: env, Dir: "/work space/ü", PID: 42, ExecPath: "/usr/bin/dsh", Home: "/home/u/.dsh"}
	if platform == "win32" {
		g.Dir, g.ExecPath, g.Home = `C:\w`, `C:\dsh.exe`, `C:\Users\u\.dsh`
	}
	return g
}

var language = []string{
	"1", "-0", "1.5", "1e3", "2**53", "2**53 + 2", "0.1 + 0.2", "1e21", "'text'", "`a${1 + 1}b`", "true", "null", "undefined", "NaN",
	"1 / 0", "[]", "[1, undefined, null]", "[, 1]", "({a: 1, b: undefined, c: [{}]})", "{}", "{a: 1}", "const a = 2; a * 3",
	"() => 1", "[() => 1]", "({f() {}})", "Symbol('x')", "10n", "new Date(0)", "[new Date(0)]", "new Map([[1, 2]]).size", "/a/u.test('a')",
	"process", "process.env", "Object.keys(process)", "'platform' in process", "typeof process", "typeof ctx", "typeof process.foo",
	"process?.foo?.bar", "process['plat' + 'form']", "try { process.foo } catch { 1 }", "process.env.A", "process.env.B", "process.env['A B']",
	"'A' in process.env", "'B' in process.env", "Object.keys(process.env)", "({...process.env})", "JSON.stringify(process.env)",
	"process.env.A ??= 'x'", "process.env.B = 'x'", "process.platform = 'x'", "delete process.env.A", "process.cwd()", "process.cwd().length", "process.pid",
	"process.execPath", "process.arch", "process.exit()", "process.argv[2]", "dshHomePath()", "dshHomePath('a', '..', 'b')", "dshHomePath('a/', '/b/')",
	"dshHomePath('')", "dshHomePath('a', '')", "dshHomePath(1)", "dshHomePath('../../..', '..')", `dshHomePath('a\\b')`, "require('fs')",
	"globalThis.process === process", "undeclared = 1", "a +", "(", "'", "throw 1", "throw new Error('x')", "throw null",
	"Math.max(...[1, 2])", "[3, 1, 2].sort()", "[1, 2].at(-1)", "Object.fromEntries([['a', 1]])", "'a,b'.split(',')", "parseInt('12px')",
	"Number('')", "Number('x')", "'x'.repeat(3)", "'x'.padStart(3, 'ab')", "Array(3).fill(0)", "new Array(2, 3)", "Array.from({length: 2}, (_, i) => i)",
	"Array.isArray([])", "[] instanceof Array", "[].constructor === Array", "new Uint8Array(2).length", "class A extends Array {}; new A(2).length",
	"(function f(n) { return n ? f(n - 1) : 7 })(50)", "let o = {}; o.o = o; o", "({toJSON() { return 5 }})", "new String('x')", "[new Number(1)]",
	"'é'.normalize('NFD').length", "'\\u{1F600}'.length", "encodeURIComponent('ä')", "eval('1 + 1')", "new Function('return 3')()", "if (true) 5",
	"a: 1", "1; 2", "// c\n4", "/* c */ 4", "5 // c", "async () => 1", "Promise.resolve(1) instanceof Promise", "new RegExp('a', 'g').flags",
}

func TestTheLanguageGivesWhatJavaScriptGives(t *testing.T) {
	for _, g := range []jsexpr.Globals{
		machine("linux", map[string]string{}),
		machine("linux", map[string]string{"A": "1", "A B": "x", "__proto__": "p", "constructor": "c"}),
		machine("win32", map[string]string{"A": ""}),
	} {
		t.Run(fmt.Sprintf("%s with %d variables", g.Platform, len(g.Env)), func(t *testing.T) {
			t.Parallel()
			compare(t, language, g)
		})
	}
}

// TestExpressionsOfTheCorpus checks the expressions that people write: with every variable unset, and set to values of
// several kinds.
func TestExpressionsOfTheCorpus(t *testing.T) {
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		t.Skip("CORPUS_DIR is not set")
	}
	text, err := os.ReadFile(filepath.Join(dir, "expressions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	expressions := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(expressions) != 86 {
		t.Fatalf("the corpus has %d expressions, want 86", len(expressions))
	}
	names := regexp.MustCompile(`env\.(\w+)`).FindAllStringSubmatch(string(text), -1)
	for _, platform := range []string{"linux", "win32"} {
		for _, value := range []string{"", "1", "true", "[1, 2]", "/a b,c"} {
			env := map[string]string{}
			for _, m := range names {
				if value != "" {
					env[m[1]] = value
				}
			}
			t.Run(platform+" "+value, func(t *testing.T) {
				t.Parallel()
				compare(t, expressions, machine(platform, env))
			})
		}
	}
}
