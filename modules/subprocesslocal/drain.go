//go:build unix

package subprocesslocal

import "time"

const (
	// silence is how long no stream may have said anything, with nothing at work on it, for draining to end.
	silence = 200 * time.Millisecond
	// idleness is how long the range may have been idle in all, whatever it says now and then.
	idleness = 500 * time.Millisecond
)

// drain waits, from the leader's exit on, until the streams are complete: at their end, or when what holds them open
// does not look as if it had more to say. The grace bounds it.
func (p *process) drain(streams []*stream, exit time.Time) {
	open := 0 // the first stream that has not ended
	ended := func() bool {
		for open < len(streams) && streams[open].isSealed() {
			open++
		}
		return open == len(streams)
	}
	if ended() {
		return
	}
	grace := time.NewTimer(p.spec.Grace)
	defer grace.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()

	var silent, idle time.Duration
	last, seen := exit, total(streams)
	for {
		select {
		case <-streams[open].sealed:
			if ended() {
				return
			}
			continue
		case <-grace.C:
			complete(streams, closing)
			return
		case <-tick.C:
		}
		// A look that comes late, on a busy machine, is no proof of the time before it.
		now := time.Now()
		step := min(now.Sub(last), 2*look)
		last = now
		bytes := total(streams)
		if !p.members.idle() {
			silent, seen = 0, bytes
			continue
		}
		idle += step
		if silent += step; bytes != seen {
			silent, seen = 0, bytes
		}
		if silent >= silence || idle >= idleness {
			break
		}
	}
	complete(streams, max(p.spec.Grace-time.Since(exit), closing))
}

// complete takes what the streams have at this moment. A tee that is stuck is not waited for any longer than within.
func complete(streams []*stream, within time.Duration) {
	for _, s := range streams {
		s.finish()
	}
	limit := time.NewTimer(within)
	defer limit.Stop()
	for _, s := range streams {
		select {
		case <-s.sealed:
		case <-limit.C:
			for _, s := range streams {
				s.abandon()
			}
			return
		}
	}
}

func total(streams []*stream) (n int64) {
	for _, s := range streams {
		n += s.kept.Total()
	}
	return n
}
