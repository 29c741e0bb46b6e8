package zklock

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

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

// WithPrefixes adds prefixes of nodes that count as contenders at this path, beside those
// of Curator, go-zookeeper, kazoo and this package: for a library that names its nodes in
// another way, but takes turns by sequence number as they do. A prefix is a word that ends
// in - or _, such as "ticket-", and is what stands before the number, without what is
// new in each name before it. Those of the other kinds of lock of this module are refused.
//
// All who lock at the path must know each other's prefixes, or there can be two holders.
func WithPrefixes(prefixes ...string) Option {
	return option(func(m *Mutex) error {
		further := *m.kind
		further.Prefixes = slices.Clone(m.kind.Prefixes)
		for _, prefix := range prefixes {
			if slices.Contains(further.Prefixes, prefix) {
				continue
			}
			if n, ok := queue.ParseNode(prefix + "0000000000"); ok && n.Prefix == prefix {
				return fmt.Errorf("%w: prefix %q is that of another kind of lock", session.ErrInvalid, prefix)
			}
			further.Prefixes = append(further.Prefixes, prefix)
		}
		m.kind = &further
		return further.Check()
	})
}
