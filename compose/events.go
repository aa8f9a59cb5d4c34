package compose

import (
	"context"
	"log/slog"

	"go.uber.org/fx/fxevent"
)

// events returns where the row's fx events go: its log, at debug. Errors among them are returned as well, and told by
// whoever ends with them.
func (w *row) events() fxevent.Logger {
	if !w.log.Enabled(context.Background(), slog.LevelDebug) {
		return fxevent.NopLogger
	}
	l := &fxevent.SlogLogger{Logger: w.log}
	l.UseContext(context.Background())
	l.UseLogLevel(slog.LevelDebug)
	l.UseErrorLevel(slog.LevelDebug)
	return l
}
