package compose_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/compose"
)

const threeRows = `- insert:
    - id: subprocess
      name: subprocess-local
    - id: tool-bash
      name: tool-bash
    - id: bash
      name: '@deepseek-ai/dsh-bash-local'
`

func linux() compose.Machine {
	return compose.Machine{Platform: "linux", Arch: "x64", Env: map[string]string{"SECRET": "hunter2", "PORT": "3080"}, Dir: "/w", PID: 7, Home: "/h"}
}

func plan(t testing.TB, o compose.FoldOptions, m compose.Machine, texts ...string) (*compose.Plan, error) {
	t.Helper()
	var layers []compose.Layer
	for i, text := range texts {
		layers = append(layers, layer(string(rune('a'+i)), text))
	}
	return compose.MakePlan(layers, modules(t), m, o)
}

// config returns the decoded configuration of a row.
func config(t testing.TB, p *compose.Plan, id string) any {
	t.Helper()
	for _, m := range p.Mounts() {
		if m.ID == id {
			return m.Config
		}
	}
	t.Fatalf("no row %q in the plan", id)
	return nil
}

func TestAPlanHoldsDecodedSettingsInStartOrder(t *testing.T) {
	t.Parallel()
	p, err := plan(t, compose.FoldOptions{}, linux(), threeRows, `- id: bash
  name: bash-local
  config:
    timeoutMs: !!js Number(process.env.PORT)
    maxTimeoutMs: 1e6
    cwd: !!js dshHomePath('work')
    graceMs: !!js process.env.NOWHERE
    limits: {cpus: 2, env: {A: !!js process.platform}}
`)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range p.Mounts() {
		ids = append(ids, m.ID)
	}
	if want := []string{"subprocess", "bash", "tool-bash"}; !cmp.Equal(ids, want) {
		t.Errorf("got %q, want %q", ids, want)
	}
	want := shellConfig{Cwd: "/h/work", TimeoutMs: 3080, MaxTimeoutMs: 1000000, GraceMs: 3000, Limits: limits{Cpus: 2, Env: map[string]string{"A": "linux"}}}
	if d := cmp.Diff(want, config(t, p, "bash")); d != "" {
		t.Error(d)
	}
}

func TestAListReplacesTheDefaultList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": {"/tmp", "/var/tmp"}, "config: {writableRoots: [/srv]}": {"/srv"}, "config: {writableRoots: []}": {}, "config: {mode: read-only}": {"/tmp", "/var/tmp"},
		"config: !!js '({writableRoots: [`a`, `b`, `c`]})'": {"a", "b", "c"}, "config: !!js undefined": {"/tmp", "/var/tmp"}, "config: null": {"/tmp", "/var/tmp"},
	} {
		p, err := plan(t, compose.FoldOptions{}, linux(), "- insert:\n  - id: policy\n    name: sandbox-policy\n    "+text+"\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, config(t, p, "policy").(policyConfig).WritableRoots); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestAnEntryReplacesTheWholeConfigOfEarlierLayers(t *testing.T) {
	t.Parallel()
	p, err := plan(t, compose.FoldOptions{}, linux(), threeRows+"- id: bash\n  config: {timeoutMs: 1, graceMs: 2}\n", "- id: bash\n  config: {graceMs: 3}\n")
	if err != nil {
		t.Fatal(err)
	}
	if c := config(t, p, "bash").(shellConfig); c.TimeoutMs != 120000 || c.GraceMs != 3 {
		t.Errorf("got %+v, want the module's default timeout", c)
	}
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want string
	}{
		{"- id: tool-bash\n  disabled: true\n", "subprocess bash"},
		{"- id: tool-bash\n  disabled: false\n", "subprocess bash tool-bash"},
		{"- id: tool-bash\n  disabled: !!js process.env.NOWHERE\n", "subprocess bash tool-bash"},
		{"- id: tool-bash\n  disabled: !!js NaN\n", "subprocess bash tool-bash"},
		{"- id: tool-bash\n  disabled: !!js \"''\"\n", "subprocess bash tool-bash"},
		{"- id: tool-bash\n  disabled: !!js process.env.PORT\n", "subprocess bash"},
		{"- id: tool-bash\n  disabled: !!js '[]'\n", "subprocess bash"},
		{"- id: tool-bash\n  disabled: !!js () => 1\n", "subprocess bash"},
		{"- id: bash\n  disabled: true\n  config: {cwd: !!js nothing.at.all}\n- id: tool-bash\n  disabled: true\n", "subprocess"},
	} {
		p, err := plan(t, compose.FoldOptions{}, linux(), threeRows, c.text)
		if err != nil {
			t.Errorf("%s%v", c.text, err)
			continue
		}
		var ids []string
		for _, m := range p.Mounts() {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestDisablingAGroupDisablesWhatIsInIt(t *testing.T) {
	t.Parallel()
	group := "- insert:\n  - {id: g, group: true, config: [{id: h, group: true, config: [{id: stub, name: stub, disabled: !!js no.such.thing}]}]}\n"
	p, err := plan(t, compose.FoldOptions{}, linux(), group+"- id: g\n  disabled: !!js process.platform === 'linux'\n")
	if err != nil || len(p.Mounts()) != 0 {
		t.Errorf("got %v, %v", p, err)
	}
	p, err = plan(t, compose.FoldOptions{}, linux(), group+"- id: stub\n  disabled: false\n")
	if err != nil || len(p.Mounts()) != 1 {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestAPlanCanBeMadeForAnotherMachine(t *testing.T) {
	t.Parallel()
	text := threeRows + "- insert: [{id: policy, name: sandbox-policy, config: {writableRoots: [!!js process.cwd(), !!js \"dshHomePath('a')\"]}}]\n- id: bash\n  disabled: !!js process.platform === 'win32'\n- id: tool-bash\n  disabled: !!js process.platform === 'win32'\n"
	m := compose.Machine{Platform: "win32", Arch: "arm64", Dir: `C:\w`, Home: `C:\h`}
	p, err := plan(t, compose.FoldOptions{}, m, text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config(t, p, "policy").(policyConfig).WritableRoots, []string{`C:\w`, `C:\h\a`}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRowsThatRepeatAnIDAreNoPlan(t *testing.T) {
	t.Parallel()
	_, err := plan(t, compose.FoldOptions{AllowUnknownIDs: true}, linux(), threeRows+"- insert: [{id: tool-bash, name: stub}]\n")
	if err == nil || !strings.Contains(err.Error(), "[duplicate-id]") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsAreExplained(t *testing.T) {
	t.Parallel()
	p, err := plan(t, compose.FoldOptions{}, linux(), threeRows, "- id: bash\n  config:\n    cwd: !!js process.env.SECRET\n    graceMs: 5\n    limits: {cpus: !!js 1 + 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := p.Settings("bash")
	if !ok {
		t.Fatal("no settings")
	}
	var got []string
	for _, s := range settings {
		got = append(got, strings.Join([]string{s.Key, s.Type, s.Value, s.Default, s.Layer, s.Place.String()}, "|"))
	}
	want := []string{
		`cwd|text|(from the environment)|""|b|b.yaml:3:5`, `timeoutMs|an integer|120000|120000||`, `maxTimeoutMs|an integer|600000|600000||`,
		`graceMs|an integer|5|3000|b|b.yaml:4:5`, `limits.memoryMax|an integer|0|0||`, `limits.cpus|a number|2|1.5|b|b.yaml:5:14`, `limits.env|a mapping|null|null||`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, ok := p.Settings("nobody"); ok {
		t.Error("a row that is not there was explained")
	}
}

func TestNoValueOfAVariableIsPrinted(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		"timeoutMs: !!js process.env.SECRET", "hunter: !!js process.env.SECRET", "limits: {env: !!js process.env.SECRET}", "limits: {env: {A: !!js '[process.env.SECRET]'}}",
		"cwd: !!js process.env.SECRET.length", "graceMs: !!js process.env.SECRET * 1", "limits: !!js '({[process.env.SECRET]: 1})'", "timeoutMs: !!js -process.env.PORT",
	} {
		_, err := plan(t, compose.FoldOptions{}, linux(), threeRows, "- id: bash\n  config:\n    "+c+"\n")
		if err == nil {
			t.Errorf("%s: got no fault", c)
			continue
		}
		if report := err.(*compose.Faults).Report(); strings.Contains(report, "hunter2") || strings.Contains(report, "3080") {
			t.Errorf("%s: the value is in\n%s", c, report)
		}
	}
}
