package headless_test

import (
	"testing"

	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
