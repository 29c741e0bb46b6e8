package hold

import (
	"fmt"

	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// maxData bounds the data of a lock's nodes, since waiters read it.
const maxData = 64 << 10

// NodeData returns a copy of the data for a lock's nodes. It refuses data that is too long, and
// the message that asks a holder to give the lock up.
func NodeData(data []byte) ([]byte, error) {
	if len(data) > maxData {
		return nil, fmt.Errorf("%w: %d bytes of node data: the limit is %d", session.ErrInvalid, len(data), maxData)
	}
	if string(data) == kinds.RevokeMessage {
		return nil, fmt.Errorf("%w: node data %q asks the holder to give the lock up", session.ErrInvalid, data)
	}
	return append([]byte{}, data...), nil
}

// ApplyAll applies every option and joins the errors. A nil option is an error.
func ApplyAll[O comparable](opts []O, apply func(O) error) error {
	var none O
	var errs []error
	for _, o := range opts {
		if o == none {
			errs = append(errs, fmt.Errorf("%w: nil option", session.ErrInvalid))
			continue
		}
		errs = append(errs, apply(o))
	}
	return Join(errs...)
}
