package main

import (
	"bytes"
	"strings"
	"testing"

	"dsh/composetest"
	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { composetest.Main(m) }

func TestACommandRunsInAnAppOfOnesOwn(t *testing.T) {
	testkit.NeedProgram(t, "bash")
	var out bytes.Buffer
	err := run(t.Context(), `echo "in $0, told $DSH_SHELL"; exit 3`, []string{"sandbox-policy.mode=danger-full-access"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "in bash, told 1") || !strings.Contains(got, "[exit code: 3]") {
		t.Errorf("got %q", got)
	}
}

func TestAFaultIsToldBeforeAnythingStarts(t *testing.T) {
	err := run(t.Context(), "true", []string{"sandbox-policy.mode=all"}, nil)
	if err == nil || !strings.Contains(err.Error(), `row "sandbox-policy": mode must be read-only`) {
		t.Errorf("got %v", err)
	}
}
