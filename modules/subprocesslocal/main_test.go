package subprocesslocal_test

import (
	"os"
	"testing"

	"dsh/internal/testkit"
)

// home is where the files of tests go. It is set before any test, as tests run in parallel.
func TestMain(m *testing.M) { os.Exit(testkit.Checked{Tests: atHome{m}}.Run()) }

type atHome struct{ tests interface{ Run() int } }

func (h atHome) Run() int {
	home, err := os.MkdirTemp("", "dsh-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	os.Setenv("DSH_HOME", home)
	return h.tests.Run()
}
