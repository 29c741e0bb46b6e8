package wire

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// Events is what a [Conn] tells its session and asks it. The goroutine that reads makes the calls, in the order of
// the stream and without a lock. Both goroutines call Owns. No call may block.
type Events interface {
	// Greeted is called with the answer to a handshake that was sent at the given time. The connection ends if
	// it returns an error.
	Greeted(g codec.Greeting, sent time.Time) error
	// Ready is called when requests may be sent: after Greeted, and after SASL if there is any. The connection has
	// the session from now on.
	Ready()
	// Accepted is called when the server has taken all identities.
	Accepted()
	// Refused is called when the server has refused an identity, with its scheme, or when SASL has failed. why may be
	// nil.
	Refused(scheme string, why error)
	// Answered is called when a request that went through the leader was answered: with what that proves, with the
	// transaction id of the answer, and with the time since the greeting of this connection.
	Answered(a clock.Answered, zxid int64, since time.Duration)
	// Fired is called with the event of a watch: its kind, such as EventDeleted, and its path.
	Fired(kind int32, path string)
	// Expired is called when the server says that the session has expired.
	Expired()
	// Closed is called when the server has confirmed closeSession.
	Closed()
	// Owns reports whether the session owns nodes, or may own some.
	Owns() bool
}
