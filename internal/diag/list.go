package diag

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// List collects errors of equal standing: rows, hooks, handles. The zero value is empty. It is not safe for
// concurrent use.
type List struct{ errs *multierror.Error }

// Add appends err; nil adds nothing, and what another List returned adds its members.
func (l *List) Add(err error) {
	if err != nil {
		l.errs = multierror.Append(l.errs, err)
	}
}

// Err returns nil for an empty list, the error itself when there is one, and otherwise one error that errors.Is and
// errors.As look through and that prints its members a line each.
func (l *List) Err() error {
	if l.errs == nil {
		return nil
	}
	if len(l.errs.Errors) == 1 {
		return l.errs.Errors[0]
	}
	l.errs.ErrorFormat = lines
	return joined{l.errs}
}

// Collect joins errs as a List does.
func Collect(errs ...error) error {
	var l List
	for _, err := range errs {
		l.Add(err)
	}
	return l.Err()
}

// joined keeps *multierror.Error inside this package: a nil one in an error variable is not a nil error.
type joined struct{ list *multierror.Error }

func (j joined) Error() string   { return j.list.Error() }
func (j joined) Unwrap() []error { return j.list.WrappedErrors() }

func lines(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n")
}
