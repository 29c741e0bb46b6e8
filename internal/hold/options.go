package hold

import (
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// maxData bounds the data of a lock's nodes: it is read by those who wait.
const maxData = 64 << 10

// NodeData returns a copy of what is to be the data of a lock's nodes, if it is not too
// much, nor the message that asks a holder to leave.
func NodeData(data []byte) ([]byte, error) {
	if len(data) > maxData {
		return nil, fmt.Errorf("%w: %d bytes of node data: the limit is %d", session.ErrInvalid, len(data), maxData)
	}
	if string(data) == queue.RevokeMessage {
		return nil, fmt.Errorf("%w: node data %q asks the holder to leave", session.ErrInvalid, data)
	}
	return append([]byte{}, data...), nil
}

// ApplyAll applies every option and joins the errors; a nil option is one.
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
	return errors.Join(errs...)
}
