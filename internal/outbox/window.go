package outbox

import "time"

// The window bounds the calls of one connection that are in flight, in number and in bytes. A heartbeat waits
// behind all of them: in the kernel, on the network and in the server. So they are bounded by time. As many calls
// and bytes are in flight as were lately answered within a twentieth of the session timeout. The others
// wait in this process, where heartbeats pass them, and a call that waits counts as not sent.
//
//   - An answer that took less than half of that time widens the window, if calls waited for room.
//   - An answer that took longer narrows it by half. So does the oldest frame in flight when it gets as old.
//   - One call is always let out, whatever its length: a frame cannot be sent in parts.
//   - Time that a call takes alone does not count. It is that of the network and the server, and a narrower
//     window would not shorten it.
//
// Bytes are those of the request and of the answer, as far as it can be foreseen (expect.go).
const (
	// windowPerTimeout is which part of a timeout calls may take that do not wait for an outage.
	windowPerTimeout = 20

	// firstCalls and firstBytes are a window about which nothing is known. On a network of 100 kB/s the bytes take
	// a third of a second.
	firstCalls = 16
	firstBytes = 32 << 10

	// mostCalls at a time are 30,000 calls in a second where an answer takes 2 ms, which is more than a server
	// answers. Creates and deletes that wait go 16 at a time, as one call.
	mostCalls = 64
	// mostBytes is what a network of 10 Mbit/s carries in a second.
	mostBytes  = 1 << 20
	leastBytes = 4 << 10

	// smallLoad is up to which load a call shows how long the network and the server take. A longer one also takes
	// the time of its bytes.
	smallLoad = 8 << 10
)

// window decides, and sends nothing. The zero value lets out one call at a time.
type window struct {
	span  time.Duration // how long answers may take
	calls int           // how many calls may be in flight
	bytes int           // how many bytes

	flying int // calls in flight
	load   int // bytes in flight

	// alone is how long the latest small call took that had been sent when no other was in flight, or any
	// answer since then that took less.
	alone time.Duration

	shrunk     time.Time // when the window was last halved
	heard      time.Time // when a call was last answered
	wantsCalls bool      // a call has waited for the number of calls
	wantsBytes bool      // a call has waited for the number of bytes
}

// begin is called with the greeting.
func (w *window) begin(timeout time.Duration) {
	w.span = timeout / windowPerTimeout
	w.calls, w.bytes = firstCalls, firstBytes
}

// look takes when the oldest frame in flight was sent.
func (w *window) look(now, oldest time.Time) {
	if w.flying > 0 && now.Sub(oldest) > w.alone+w.span {
		w.shrink(now)
	}
}

// room reports whether one more call may leave.
func (w *window) room(load int) bool {
	switch {
	case w.flying == 0:
		return true
	case w.flying >= w.calls:
		w.wantsCalls = true
		return false
	case w.load+load > w.bytes:
		w.wantsBytes = true
		return false
	}
	return true
}

// sent takes note of a call. It reports whether the call is small and alone in flight.
func (w *window) sent(now time.Time, load int) (alone bool) {
	if w.flying == 0 && !w.heard.IsZero() && now.Sub(w.heard) > w.span*windowPerTimeout {
		// After a timeout without calls, nobody knows what the network carries.
		w.calls, w.bytes = min(w.calls, firstCalls), min(w.bytes, firstBytes)
	}
	w.flying++
	w.load += load
	return w.flying == 1 && load <= smallLoad
}

// answered takes note of the answer to a call. alone is what sent has returned.
func (w *window) answered(now, sent time.Time, load int, alone bool) {
	w.flying--
	w.load -= load
	w.heard = now
	age := now.Sub(sent)
	if alone || age < w.alone {
		w.alone = age
	}
	switch {
	case age > w.alone+w.span:
		w.shrink(now)
	case age <= w.alone+w.span/2:
		if w.wantsCalls {
			w.calls = min(w.calls+1, mostCalls)
		}
		if w.wantsBytes {
			w.bytes = min(w.bytes+load, mostBytes)
		}
	}
}

// wanted reports whether calls have waited for room since none waited at all.
func (w *window) wanted() bool { return w.wantsCalls || w.wantsBytes }

// idle is called when no call waits.
func (w *window) idle() { w.wantsCalls, w.wantsBytes = false, false }

// shrink halves the window. It waits a while before it does that again, for the effect to show.
func (w *window) shrink(now time.Time) {
	if now.Sub(w.shrunk) < w.span {
		return
	}
	w.shrunk = now
	w.calls, w.bytes = max(1, w.calls/2), max(leastBytes, w.bytes/2)
}
