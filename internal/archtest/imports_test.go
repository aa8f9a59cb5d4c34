// Package archtest checks the structure of the project: which package may import which.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// contracts are the packages under modules/ that hold interfaces. Every other package there is a provider.
var contracts = []string{"agent", "approval", "jobs", "llm", "sandbox", "session", "shell", "subprocess", "tools"}

// libraries have one importing package each, so that replacing one touches one place.
var libraries = map[string]string{
	"go.yaml.in/yaml":                     "dsh/internal/source",
	"github.com/dop251/goja":              "dsh/internal/jsexpr",
	"github.com/hashicorp/go-multierror":  "dsh/internal/diag",
	"github.com/coreos/go-systemd":        "dsh/modules/subprocesslocal",
	"github.com/sashabaranov/go-openai":   "dsh/modules/llmopenai",
	"github.com/spf13/cobra":              "dsh/cli",
	"github.com/knadh/koanf":              "dsh/compose",
	"github.com/google/jsonschema-go":     "dsh/compose",
	"github.com/landlock-lsm/go-landlock": "dsh/modules/sandboxlocal",
	"github.com/spf13/pflag":              "dsh/cli",
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheTable(t *testing.T) {
	packages := load(t)
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages; the test looks at the wrong place", len(packages))
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			if reason := refused(p.ImportPath, imported); reason != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, reason)
			}
		}
	}
}

func TestTheTableRefusesWhatItShould(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"dsh/modules/shell", "go.uber.org/fx"},
		{"dsh/modules/shell", "dsh/module"},
		{"dsh/modules/shell", "dsh/modules/bashlocal"},
		{"dsh/modules/toolbash", "dsh/modules/bashlocal"},
		{"dsh/modules/bashlocal", "dsh/compose"},
		{"dsh/modules/bashlocal", "dsh/internal/source"},
		{"dsh/modules/internal/bashexec", "dsh/modules/subprocesslocal"},
		{"dsh/modules/internal/bashexec", "dsh/internal/source"},
		{"dsh/modules/llmscript", "go.yaml.in/yaml/v4"},
		{"dsh/modules/agentloop", "github.com/sashabaranov/go-openai"},
		{"dsh/module", "dsh/modules/shell"},
		{"dsh/compose", "dsh/bundles/base"},
		{"dsh/compose", "dsh/modules/tools"},
		{"dsh/cli", "dsh/bundles/base"},
		{"dsh/cli", "dsh/modules/bashlocal"},
		{"dsh/internal/diag", "go.yaml.in/yaml/v4"},
		{"dsh/compose", "testing"},
		{"dsh/modules/bashlocal", "dsh/modules/shell/shelltest"},
		{"dsh/cli", "dsh"},
	} {
		if refused(c.from, c.to) == "" {
			t.Errorf("%s importing %s is allowed", c.from, c.to)
		}
	}
}

// refused says why from must not import to; empty if it may.
func refused(from, to string) string {
	for prefix, owner := range libraries {
		if strings.HasPrefix(to, prefix) && from != owner && !supportsTests(from) {
			return "only " + owner + " imports this library"
		}
	}
	if to == "dsh" && from != "dsh/cmd/dsh" {
		return "only cmd/dsh imports the deployment layer"
	}
	if !supportsTests(from) && (to == "testing" || supportsTests(to)) {
		return "test support is for tests"
	}
	if supportsTests(from) || within(from, "dsh/bundles", "dsh/cmd", "dsh/examples") {
		return ""
	}
	switch {
	case isContract(from):
		if !standard(to) && !isContract(to) && to != "dsh/module/key" {
			return "a contract imports the standard library, contracts and module/key"
		}
	case from == "dsh/modules/internal/yamldoc" && to == "dsh/internal/source":
		return "" // the one way for a module to read YAML: by the composer's rules, without its nodes
	case within(from, "dsh/modules"):
		return refusedToProvider(to)
	case from == "dsh/module":
		if within(to, "dsh/modules", "dsh/compose", "dsh/cli") {
			return "module stands below everything that is composed"
		}
	case from == "dsh/compose":
		if within(to, "dsh/modules", "dsh/bundles", "dsh/cli") {
			return "the composer knows no module"
		}
	case from == "dsh/cli":
		if within(to, "dsh/bundles") || within(to, "dsh/modules") && !isContract(to) {
			return "the command line knows contracts alone"
		}
	}
	return ""
}

func refusedToProvider(to string) string {
	switch {
	case standard(to), isContract(to), within(to, "dsh/module", "dsh/internal/diag", "dsh/internal/dshhome", "dsh/internal/visible", "dsh/modules/internal"):
		return ""
	case within(to, "dsh"):
		return "a provider imports contracts, module, modules/internal, and of internal only diag, dshhome and visible"
	}
	return ""
}

func isContract(path string) bool {
	name, ok := strings.CutPrefix(path, "dsh/modules/")
	return ok && slices.Contains(contracts, name)
}

// supportsTests reports whether path is a package for tests: its name says so.
func supportsTests(path string) bool {
	return within(path, "dsh") && (strings.HasSuffix(path, "test") || path == "dsh/internal/testkit")
}

func within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "dsh"
}

func load(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "dsh/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
