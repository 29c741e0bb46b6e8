package zklock

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes a [Mutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*Mutex) error }

type option func(*Mutex) error

func (o option) apply(m *Mutex) error { return o(m) }

// WithData sets the data of this mutex's nodes, at most 64 KiB, which [Mutex.Contenders] shows to
// other processes. Default: JSON with the id host/pid of this process, and whether its holder can be
// revoked: {"id":"web-3/4711","revocable":false}. If the acquisition has a label, or the manager has
// hooks that return a traceparent, these are in it too.
func WithData(data []byte) Option {
	return option(func(m *Mutex) error {
		kept, err := hold.NodeData(data)
		m.data = kept
		return err
	})
}

// WithPrefixes adds prefixes of nodes that count as contenders. It is for sharing the lock with a
// library that names its nodes differently, but takes turns by sequence number as Curator,
// go-zookeeper, kazoo and this package do. A prefix is the part of the name just before the
// number, without the part that differs from name to name. It is a word that ends in - or _, such
// as "ticket-". Prefixes of the other kinds of lock of this module are refused.
//
// All libraries that lock at the path must know each other's prefixes, or there can be two
// holders. Default: the prefixes of Curator, go-zookeeper, kazoo and this package.
func WithPrefixes(prefixes ...string) Option {
	return option(func(m *Mutex) error {
		further := *m.kind
		further.Prefixes = slices.Clone(m.kind.Prefixes)
		for _, prefix := range prefixes {
			if slices.Contains(further.Prefixes, prefix) {
				continue
			}
			if n, ok := queue.ParseNode(prefix + "0000000000"); ok && n.Prefix == prefix {
				return fmt.Errorf("%w: prefix %q belongs to another kind of lock", session.ErrInvalid, prefix)
			}
			further.Prefixes = append(further.Prefixes, prefix)
		}
		m.kind = &further
		return further.Check()
	})
}
