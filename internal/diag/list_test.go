package diag_test

import (
	"errors"
	"testing"

	"dsh/internal/diag"
)

func TestAnEmptyListIsNoError(t *testing.T) {
	t.Parallel()
	var l diag.List
	l.Add(nil)
	if err := l.Err(); err != nil {
		t.Errorf("got %#v", err)
	}
	if err := diag.Collect(nil, nil); err != nil {
		t.Errorf("got %#v", err)
	}
}

func TestAListOfOneIsThatError(t *testing.T) {
	t.Parallel()
	one := errors.New("one")
	if err := diag.Collect(nil, one); err != one {
		t.Errorf("got %v", err)
	}
}

func TestAListKeepsItsMembersAndPrintsALineEach(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), &diag.Diagnostic{Message: "two", Slug: "s"}
	inner := diag.Collect(one, two)
	err := diag.Collect(inner, errors.New("three"))
	if got, want := err.Error(), "one\ntwo [s]\nthree"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d, ok := errors.AsType[*diag.Diagnostic](err); !errors.Is(err, one) || !ok || d != two {
		t.Error("a member is not found in the list")
	}
}
