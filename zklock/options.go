package zklock

import "github.com/turnstile-go/turnstile/internal/hold"

// Option changes a [Mutex]. Bad values make [New] fail, with an error that matches
// [session.ErrInvalid].
type Option interface{ apply(*Mutex) error }

type option func(*Mutex) error

func (o option) apply(m *Mutex) error { return o(m) }

// WithData sets the data of this mutex's nodes, which [Mutex.Contenders] shows to
// others; at most 64 KiB. Default: {"id":"host/pid"}, with a traceparent if the manager
// has hooks that give one.
func WithData(data []byte) Option {
	return option(func(m *Mutex) error {
		kept, err := hold.NodeData(data)
		m.data = kept
		return err
	})
}
