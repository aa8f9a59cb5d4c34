package bashsandbox

import (
	"bytes"
	"path/filepath"
	"sync"
)

// holder passes a stream on to whoever watches a command, but keeps back what may be the words of a runner that fails:
// the command is then confined in another way, and these were none of its words.
type holder struct {
	to     func([]byte)
	runner string // the program

	mu      sync.Mutex
	held    []byte
	passing bool
}

// most is how much is kept back. A runner that fails says a line.
const most = 4096

func (h *holder) write(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.passing {
		h.to(p)
		return
	}
	h.held = append(h.held, p...)
	prefix := []byte(filepath.Base(h.runner) + ": ")
	n := min(len(prefix), len(h.held))
	if h.runner == "" || len(h.held) > most || !bytes.Equal(h.held[:n], prefix[:n]) {
		h.pass()
	}
}

// release passes on what was kept back.
func (h *holder) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass()
}

func (h *holder) pass() {
	if h.passing = true; len(h.held) > 0 {
		h.to(h.held)
	}
	h.held = nil
}
