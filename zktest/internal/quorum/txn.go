package quorum

import (
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A txn is a transaction: the changes that a request makes, or the end of a session. A request that was
// refused is a transaction without changes, and has a number, too.
type txn struct {
	zxid    int64
	time    int64
	changes []znode.Change
	op      int32         // codec.OpConnect if it creates a session, codec.OpClose if it ends one, otherwise 0
	session int64         // that it creates or ends
	timeout time.Duration // of the session that it creates

	request    *request          // that it answers; nil: none
	err        error             // why it changes nothing; nil for a multi, even for one that fails
	operations []znode.Operation // of a multi
	failed     []byte            // the answer to a multi that fails
}
