package quorum

import (
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A txn is what one request, or one session's end, changes: all of it or, if
// the request was refused, nothing, and then it still has its number.
type txn struct {
	zxid    int64
	time    int64
	changes []znode.Change
	op      int32         // wire.OpConnect or wire.OpClose: it creates or ends a session; otherwise 0
	session int64         // the one that op is about
	timeout time.Duration // of the session that it creates

	request    *request          // that it was made for; nil: none
	err        error             // why it changes nothing; nil if it does, and for a multi
	operations []znode.Operation // of a multi
	failed     []byte            // the answer to a multi that changes nothing
}
