package outbox

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Creates and deletes of different callers that wait for room leave together, as one multi. The ensemble then
// agrees once for all of them (group commit). A multi takes the room of one call in the window, with its bytes. While there
// is room for all, each leaves alone and at once, so a lock takes no longer than without multis.
//
//   - Only requests that hardly ever fail take part, and only at their first try: see [Call.Batch]. A multi carries out all
//     of its operations or none. If one is refused, all leave again, each alone, and further requests go alone for a while.
//   - A multi has at most one create in a directory. All nodes of one transaction have the same transaction id (czxid),
//     which is the fencing token of a lock. Two holders of one lock must not have the same token.

const (
	// batchOps is how many operations a multi has at most. It is below what any limit of a server allows.
	batchOps = 16
	// batchBytes is how long a multi is at most, with its frame. Any server accepts that, and it is below SuspiciousLength:
	// otherwise a multi that a server refuses for its length would fail its callers for each other.
	batchBytes = 16_000
	// mostLooked bounds the directories that gather looks at: the calls of others may be too long.
	mostLooked = 4 * batchOps

	// mostBatches is how many creates, deletes and multis of them are in flight while others wait, unless these fill another
	// multi. Without the bound, each answer makes room for the few that have come since the last. Reads need none: nothing is
	// agreed for them. A bound of 16 that held before the window was full is gone: with 1,000 locks at 20 ms each way it took
	// a third of the throughput, and at 100 kB/s a release took more than 10 s (docs/measured/outbox.md).
	mostBatches = 4
)

// batchFrame is what a multi takes beside its operations: the head of the request, and the end.
const batchFrame = codec.RequestHead + codec.PartHead

// partSize is what a request takes in a multi.
func partSize(one *Call) int { return codec.PartHead + len(one.Frame) - codec.RequestHead }

// Multi returns one request that has the frames and the checks of the parts.
func Multi(parts []Call) Call {
	check := func(a *codec.Answer) error { return checkParts(parts, a.Results) }
	return Call{Frame: multiFrame(parts), Check: check}
}

// multiFrame returns the parts as one request.
func multiFrame(parts []Call) []byte {
	size := batchFrame
	for i := range parts {
		size += partSize(&parts[i])
	}
	e := codec.Encoder{B: make([]byte, 4, size)}
	e.Int32(0) // the number
	e.Int32(codec.OpMulti)
	for _, one := range parts {
		e.MultiHeader(codec.Op(one.Frame), false, -1)
		e.B = append(e.B, one.Frame[codec.RequestHead:]...)
	}
	e.MultiHeader(codec.OpError, true, -1)
	return e.Frame()
}

// checkParts returns what is wrong with the results of a multi. One that was carried out has a result of the kind of each
// part. In one that was refused each result is an error, of which some say only that their part was not carried out either.
func checkParts(parts []Call, results []codec.Result) error {
	if len(results) != len(parts) {
		return fmt.Errorf("%d results of a multi of %d operations", len(results), len(parts))
	}
	refused := anyRefused(results)
	for i, one := range parts {
		want := codec.Op(one.Frame)
		if refused {
			want = codec.OpError
		}
		if got := results[i].Op; got != want {
			return fmt.Errorf("result %d of a multi is of kind %d, want kind %d", i, got, want)
		}
		if refused || one.Check == nil {
			continue
		}
		if err := one.Check(&codec.Answer{Path: results[i].Path}); err != nil {
			return err
		}
	}
	return nil
}

func anyRefused(results []codec.Result) bool {
	return slices.ContainsFunc(results, func(r codec.Result) bool { return r.Code != codec.CodeOK })
}

// saysNothing reports whether a server answers a request with this code whatever the request is: because of the session,
// or of its own state. It would answer each part like that.
func saysNothing(code int32) bool {
	switch code {
	case codec.CodeSessionExpired, codec.CodeSessionMoved, codec.CodeThrottled, codec.CodeConnectionLoss, codec.CodeOperationTimeout:
		return true
	}
	return false
}

// caution makes calls leave alone after a multi was refused: the next 16 at first, and twice as many
// after each further refusal.
type caution struct {
	left int // how many of the next calls leave alone
	last int // how many it were after the latest refusal
}

const (
	cautionFirst = 16
	cautionMost  = 1024
)

func (c *caution) failed() {
	c.last = min(max(2*c.last, cautionFirst), cautionMost)
	c.left = c.last
}

func (c *caution) succeeded() { c.last /= 2 }

// spend is called when a call leaves that could have left with others.
func (c *caution) spend() { c.left = max(0, c.left-1) }
