package outbox

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"
)

// ErrTooLong means that an answer is longer than [codec.MaxFrame], or that the server probably takes no request of
// such a length. In the second case the error matches zk.ErrConnectionClosed too: nobody knows what became of the
// request.
var ErrTooLong = errors.New("too long")

// longRequest is the error for a request of so many bytes.
type longRequest int

func (n longRequest) Error() string {
	return fmt.Sprintf("too long: the connection was lost each time when a request of %d bytes was sent, so the server "+
		"probably takes no such request (jute.maxbuffer)", int(n))
}

func (n longRequest) Is(target error) bool {
	return target == ErrTooLong || target == zk.ErrConnectionClosed
}

// refusedAfter is how many connections in a row are lost before a request is given up.
const refusedAfter = 3

// SuspiciousLength is the least length of a request that a server may refuse. Requests of several callers, such as
// batches of creates and deletes, are shorter: otherwise their callers would fail for each other. The least
// jute.maxbuffer that makes sense is longer.
const SuspiciousLength = 24 << 10

// Refusals finds requests that are longer than the servers take. A server hangs up on such a request without a
// word, each time it is sent, and takes all other calls of the connection with it. All connections of a session share
// it, and it is safe for concurrent use.
//
// It cannot be sure: connections break for other reasons too. So a request counts as refused only when several
// connections in a row were lost while it, or a longer one, was the longest in flight, and no request of such a length was
// answered in between.
type Refusals struct {
	mu    sync.Mutex
	size  int // of the shortest request that may be too long
	count int // how many connections were lost with it
}

// answered takes the length of a request that was answered.
func (r *Refusals) answered(size int) {
	if size < SuspiciousLength {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if size >= r.size {
		r.size, r.count = 0, 0
	}
}

// lost takes the length of the longest request that was in flight when the server ended a connection. It returns a
// function that says why a request of a given length is not to be sent again.
func (r *Refusals) lost(longest int) func(size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case longest < SuspiciousLength:
	case r.count > 0 && longest >= r.size:
		r.count++
	default:
		r.size, r.count = longest, 1
	}
	least, refused := r.size, r.count >= refusedAfter && longest >= SuspiciousLength
	return func(size int) error {
		if !refused || size < least {
			return nil
		}
		return longRequest(size)
	}
}
