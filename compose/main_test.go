package compose

import (
	"testing"

	"dsh/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
