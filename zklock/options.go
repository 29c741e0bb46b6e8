package zklock

import (
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/session"
)

// Option changes a [Mutex]. Bad values make [New] fail, with an error that matches
// [session.ErrInvalid].
type Option interface{ apply(*Mutex) error }

type option func(*Mutex) error

func (o option) apply(m *Mutex) error { return o(m) }

// maxData bounds what WithData takes: node data is read by those who wait.
const maxData = 64 << 10

// WithData sets the data of this mutex's nodes, which [Mutex.Contenders] shows to
// others; at most 64 KiB. Default: {"id":"host/pid"}, with a traceparent if the manager
// has hooks that give one.
func WithData(data []byte) Option {
	return option(func(m *Mutex) error {
		if len(data) > maxData {
			return fmt.Errorf("%w: %d bytes of node data: the limit is %d", session.ErrInvalid, len(data), maxData)
		}
		m.data = append([]byte{}, data...)
		return nil
	})
}

func (m *Mutex) applyAll(opts []Option) error {
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, fmt.Errorf("%w: nil option", session.ErrInvalid))
			continue
		}
		errs = append(errs, o.apply(m))
	}
	return errors.Join(errs...)
}
