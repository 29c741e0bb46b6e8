package outbox

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Call is a request of the session. It needs no goroutine.
type Call struct {
	// Frame is the request. The outbox fills in its number, and does not change it any more once Done was called.
	Frame []byte
	// Check, if it is not nil, returns what is wrong with an answer that is well-formed and cannot be true. The
	// connection ends then, as with a malformed answer. The goroutine that reads calls it, and it must not block.
	Check func(*codec.Answer) error
	// Done is called once: with the answer, or with an error. It is called by one of the goroutines of the connection,
	// or by the one that calls Forsake, CloseSession or Call of it, and must not block.
	Done func(Reply)
	// GivenUp, if it is not nil, is closed when the caller has given up. A call that has not left by then never leaves.
	GivenUp <-chan struct{}
	// Batch, if it is not nil, says that the call may be sent in one multi with others that have it: the call is a create
	// or a delete that will hardly be refused. The number of the multi is stored there. Multis are counted from 1, by
	// Config.Batches.
	Batch *atomic.Int64
	// Dir, if it is not empty, is the directory that the call is about, in place of that of its path. Calls of one
	// directory keep their order.
	Dir string
}

func (c *Call) gone() bool {
	select {
	case <-c.GivenUp:
		return true
	default:
		return false
	}
}

// Reply is the end of a [Call].
type Reply struct {
	codec.Answer       // zero if Code is not CodeOK; several calls may share what it points to, and nobody may change it
	Code         int32 // of the server
	Err          error // not nil if there was no answer; matches ErrTooLong if the call is the reason
}

var (
	// ErrGivenUp is the error for a call that was not sent, because its caller has given up.
	ErrGivenUp = errors.New("given up before it was sent")
	// ErrNotSent is the error for a call that was not sent, because the connection has ended. It matches net.ErrClosed.
	ErrNotSent = fmt.Errorf("not sent: %w", net.ErrClosed)
)
