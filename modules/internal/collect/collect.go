package collect

import (
	"io"
	"os"
	"sync"

	"dsh/modules/subprocess"
)

// Config says how much of a stream is kept, and where.
type Config struct {
	// MaxBytes is how much of the end stays in memory.
	MaxBytes int64
	// SpillMaxBytes is how long the stream may become before its file is given up; 0: no file.
	SpillMaxBytes int64
	// Create makes the file. It is called at most once, when the stream passes MaxBytes.
	Create func() (*os.File, error)
	// Trouble, if not nil, is told once why there is no file although there should be one.
	Trouble func(error)
}

// Collector collects one stream. One goroutine writes; any number read, at any time. Seal may be called by any.
type Collector struct {
	max int64

	mu    sync.Mutex
	ring  []byte // grows to max; from then on the oldest byte is at head
	head  int
	total int64
	path  string // of the file, while that holds the whole stream

	spill spill
}

var (
	_ subprocess.Reader = (*Collector)(nil)
	_ io.Writer         = (*Collector)(nil)
)

// New returns an empty collector.
func New(c Config) *Collector {
	return &Collector{max: c.MaxBytes, spill: spill{limit: c.SpillMaxBytes, create: c.Create, trouble: c.Trouble}}
}

// Write appends p to the stream, or drops it if the stream is sealed. It always reports all of p as written: a stream
// has to be read on whatever becomes of the bytes.
func (c *Collector) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.spill.mu.Lock()
	defer c.spill.mu.Unlock()
	if c.spill.sealed {
		return len(p), nil
	}
	// Only Write changes the ring, so it may be read here without its lock, which readers should not wait for during
	// file I/O.
	path := ""
	if end := c.total + int64(len(p)); end > c.max {
		path = c.spill.write(c.held, p, end)
	}
	c.mu.Lock()
	c.keep(p)
	c.path = path
	c.mu.Unlock()
	return len(p), nil
}

// Seal ends the stream: the file is closed, and what is written later is dropped.
func (c *Collector) Seal() {
	c.spill.mu.Lock()
	defer c.spill.mu.Unlock()
	if c.spill.sealed {
		return
	}
	if !c.spill.seal() {
		c.mu.Lock()
		c.path = ""
		c.mu.Unlock()
	}
}

// ReadAt implements subprocess.Reader.
func (c *Collector) ReadAt(offset int64) (p []byte, next int64, lossy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.total - int64(len(c.ring))
	switch {
	case offset >= c.total:
		return nil, c.total, false
	case offset < first || offset < 0:
		return c.tail(0), c.total, offset < first && first > 0
	}
	return c.tail(int(offset - first)), c.total, false
}

// Collected implements subprocess.Reader.
func (c *Collector) Collected() subprocess.Collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return subprocess.Collected{
		Tail: c.tail(0), Total: c.total, Truncated: c.total > int64(len(c.ring)), SpillPath: c.path,
	}
}

// Total returns how long the stream is so far.
func (c *Collector) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// keep adds p to the ring.
func (c *Collector) keep(p []byte) {
	c.total += int64(len(p))
	if over := int64(len(p)) - c.max; over > 0 {
		p = p[over:]
	}
	if room := c.max - int64(len(c.ring)); room > 0 {
		n := min(int(room), len(p))
		c.ring = append(c.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.head:], p)
		p = p[n:]
		c.head += n
		if c.head == len(c.ring) {
			c.head = 0
		}
	}
}

// held returns the ring's bytes in order, in at most two pieces.
func (c *Collector) held() [2][]byte { return [2][]byte{c.ring[c.head:], c.ring[:c.head]} }

// tail returns a copy of the ring from its byte number skip on.
func (c *Collector) tail(skip int) []byte {
	p := make([]byte, 0, len(c.ring)-skip)
	for _, part := range c.held() {
		n := min(skip, len(part))
		skip -= n
		p = append(p, part[n:]...)
	}
	return p
}
