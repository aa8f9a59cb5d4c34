package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dsh/bundles/base"
	"dsh/bundles/headless"
	"dsh/cli"
	"dsh/module"
)

func whole() cli.Build {
	return cli.Build{
		Bundles:  []module.Bundle{base.Bundle(), headless.Bundle()},
		Profiles: []cli.Profile{{Name: "headless", Bundles: []string{"base", "headless"}}},
	}
}

var firstLine = regexp.MustCompile(`^p\.yaml:1:([0-9]+): row "([^"]+)": (.*) \[invalid\]\n`)

// TestNoModuleTakesWhatCannotWork has every shipped module refuse a setting of the right type, when the configuration is
// checked, at the value.
func TestNoModuleTakesWhatCannotWork(t *testing.T) {
	t.Setenv("DSH_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	told := map[string]bool{}
	for _, c := range []struct{ row, setting, at, want string }{
		{"subprocess", "keepEnv: [PATH, 'A=B']", "'A=B'", `keepEnv[1] must be the name of a variable, got "A=B"`},
		{"subprocess", "keepEnv: [dsh_home]", "dsh_home", `keepEnv[0] must not be a DSH_ name`},
		{"subprocess", "spillKeepDays: -1", "-1", "spillKeepDays must be from 0 to 36500, got -1"},
		{"subprocess", "range: cgroups", "cgroups", `range must be auto, scope, cgroup or group, got "cgroups"`},
		{"subprocess", "range: scope", "scope", "range must not be scope unless enterScope is true"},
		{"sandbox", "backend: bubblewrap", "bubblewrap", `backend must be auto, bwrap, landlock or custom, got "bubblewrap"`},
		{"sandbox", "backend: custom", "custom", "runnerCommand must name a program when backend is custom"},
		{"sandbox", "runnerFailureSignatures: [e], runnerCommand: [x, '', \"a\\0\"]", `"a\0"`, "runnerCommand[2] must be text without NUL bytes"},
		{"sandbox", "network: off", "off", `network must be host or none, got "off"`},
		{"sandbox", "devices: [/dev/kvm, /etc]", "/etc", `devices[1] must be a path below /dev, got "/etc"`},
		{"sandbox", "probeTimeoutMs: 0", "0", "probeTimeoutMs must be a positive number of milliseconds, got 0"},
		{"sandbox-policy", "mode: read_only", "read_only", `mode must be read-only, workspace-write or danger-full-access, got "read_only"`},
		{"sandbox-policy", "workspaceRoot: .", ".", `workspaceRoot must be an absolute path, got "."`},
		{"approval", "policy: always", "always", `policy must be ask or never, got "always"`},
		{"bash-sandbox", "timeoutMs: 700000", "700000", "timeoutMs must be at most maxTimeoutMs, which is 600000, got 700000"},
		{"bash-sandbox", "maxTimeoutMs: 1000", "1000", "timeoutMs must be at most maxTimeoutMs, which is 1000, got 120000"},
		{"bash-sandbox", "cwd: here", "here", `cwd must be an absolute path, got "here"`},
		{"bash-sandbox", "graceMs: -1", "-1", "graceMs must be positive, got -1"},
		{"bash-sandbox", "survivors: kill", "kill", `survivors must be report or terminate, got "kill"`},
		{"bash-local", "maxOutputBytes: 0", "0", "maxOutputBytes must be positive, got 0"},
		{"jobs", "maxConcurrentJobsPerOwner: 0", "0", "maxConcurrentJobsPerOwner must be positive, got 0"},
		{"tool-jobs", "maxWaitTimeoutMs: 5", "5", "waitTimeoutMs (30000) exceeds maxWaitTimeoutMs (5)"},
		{"system-prompt", "persona: '{{mode}}'", "'{{mode}}'", "persona "},
		{"session-persistence-jsonl", "root: sessions", "sessions", `root must be an absolute path, got "sessions"`},
		{"llm", "baseURL: 'ftp://models'", "'ftp://models'", "baseURL must be an http or https address"},
		{"llm", "apiKeyEnv: 'sk-1'", "'sk-1'", "apiKeyEnv must be the name of a variable"},
		{"llm-script", "file: script.yaml", "script.yaml", `file must be the absolute path of a script, got "script.yaml"`},
		{"agent-loop", "maxSteps: 0", "0", "maxSteps must be a positive integer, got 0"},
	} {
		line := "- {id: " + c.row + ", disabled: false, config: {" + c.setting + "}}\n"
		if err := os.WriteFile("p.yaml", []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--patch", "p.yaml"}
		for enabled, instead := range map[string]string{"bash-local": "bash-sandbox", "llm-script": "llm"} {
			if enabled == c.row {
				if err := os.WriteFile("off.yaml", []byte("- {id: "+instead+", disabled: true}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--patch", "off.yaml")
			}
		}
		var stderr bytes.Buffer
		code := cli.Run(whole(), append(args, "config", "check"), &stderr, &stderr)
		m := firstLine.FindStringSubmatch(stderr.String())
		if code != 2 || m == nil || m[2] != c.row || !strings.HasPrefix(m[3], c.want) || strings.Count(stderr.String(), "[invalid]") != 1 {
			t.Errorf("%s: status %d, want the one fault %q\n%s", strings.TrimSpace(line), code, c.want, &stderr)
			continue
		}
		if column, err := strconv.Atoi(m[1]); err != nil || !strings.HasPrefix(line[column-1:], c.at) {
			t.Errorf("%s: the fault stands at column %s, want it at %s", strings.TrimSpace(line), m[1], c.at)
		}
		told[c.row] = true
	}
	for _, b := range whole().Bundles {
		for _, m := range b.Modules {
			_, validates := m.DefaultConfig().(interface{ Validate() error })
			row := map[string]string{
				"subprocess-local": "subprocess", "sandbox-local": "sandbox", "approval-terminal": "approval", "jobs-local": "jobs",
				"session-jsonl": "session-persistence-jsonl", "llm-openai": "llm",
			}[m.Name()]
			if row == "" {
				row = m.Name()
			}
			if validates && !told[row] {
				t.Errorf("module %s refuses nothing here", m.Name())
			}
		}
	}
}

// TestManyFaultsAtOnce has mistakes of seven steps told in a moment, and no row constructed. The best of several runs
// counts: a busy machine is no fault of it.
func TestManyFaultsAtOnce(t *testing.T) {
	t.Setenv("DSH_HOME", t.TempDir())
	dir := t.TempDir()
	b := whole()
	b.Bundles = append(b.Bundles, module.Bundle{
		Name: "tripwire", File: "tripwire.yaml", Patch: []byte("- insert: [{id: tripwire, name: tripwire}]"),
		Modules: []module.Module{module.Define(module.Spec[noConfig]{Name: "tripwire", Constructor: func(noConfig) error {
			t.Error("a row was constructed")
			return nil
		}})},
	})
	b.Profiles[0].Bundles = append(b.Profiles[0].Bundles, "tripwire")
	patch := filepath.Join(dir, "seven.yaml")
	text := `- id: bash-locl
  disabled: true
- id: shell-env
  config: !include other.yaml
- insert:
    - {id: extra, name: bash-lokal, disabled: true}
    - {id: other, name: tools-local}
- id: bash-sandbox
  config:
    timeoutMS: 1
    graceMs: soon
    maxOutputBytes: !!js process.exit(1)
`
	if err := os.WriteFile(patch, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for status, args := range map[int][]string{2: {"config", "check"}, 125: {"exec", "touch " + filepath.Join(dir, "ran")}} {
		best := time.Hour
		for range 10 {
			var stdout, stderr bytes.Buffer
			begin := time.Now()
			code := cli.Run(b, append([]string{"--patch", patch}, args...), &stdout, &stderr)
			best = min(best, time.Since(begin))
			if faults := strings.Count(stderr.String(), patch+":"); code != status || faults != 7 {
				t.Fatalf("dsh %v: status %d and %d places\n%s", args, code, faults, &stderr)
			}
		}
		t.Logf("dsh %v: %v", args, best)
		if best > 200*time.Millisecond {
			t.Errorf("dsh %v takes %v for seven faults", args, best)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}

// TestABuildIsComplete has a build whose profile names what it does not have, and one without profiles.
func TestABuildIsComplete(t *testing.T) {
	t.Setenv("DSH_HOME", t.TempDir())
	wrong := whole()
	wrong.Profiles = []cli.Profile{{Name: "mine", Bundles: []string{"base", "headles"}}}
	var out bytes.Buffer
	code := cli.Run(wrong, []string{"config", "check"}, &out, &out)
	if want := "dsh: this build's profile \"mine\" has the bundle \"headles\", which the build lacks; there are base, headless\n"; code != 2 || out.String() != want {
		t.Errorf("status %d, %q, want %q", code, out.String(), want)
	}
	bare := whole()
	bare.Profiles = nil
	if got := run(t, bare, "config", "dump", "--rows"); !strings.Contains(got, "id: bash-sandbox") || !strings.Contains(got, "id: headless-runner") {
		t.Errorf("a build without profiles has the rows\n%s", got)
	}
}
