package zklock

import (
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes a [Mutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// config is what the options say.
type config struct {
	kind    *kinds.Kind
	request place.Request // but for its Kind
	latch   bool
	local   hold.LocalConfig // zero: each call has a place of its own
	async   bool             // WithAsyncRelease
}

// configOf applies the options. It refuses those that exclude each other.
func configOf(opts []Option) (*config, error) {
	c := &config{kind: mutex}
	if err := hold.ApplyAll(opts, func(o Option) error { return o.apply(c) }); err != nil {
		return nil, err
	}
	prefixes := c.kind != mutex
	for _, excluded := range []struct {
		when bool
		text string
	}{
		{c.latch && prefixes, "WithLeaderLatch excludes WithPrefixes"},
		{c.local.Lazy > 0 && c.latch, "WithLazyRelease excludes WithLeaderLatch"},
	} {
		if excluded.when {
			return nil, fmt.Errorf("%w: %s", session.ErrInvalid, excluded.text)
		}
	}
	if c.latch {
		c.kind = latch
	}
	return c, nil
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
	return option(func(c *config) error {
		further := *c.kind
		further.Prefixes = slices.Clone(c.kind.Prefixes)
		for _, prefix := range prefixes {
			if slices.Contains(further.Prefixes, prefix) {
				continue
			}
			if n, ok := kinds.ParseNode(prefix + "0000000000"); ok && n.Prefix == prefix {
				return fmt.Errorf("%w: prefix %q belongs to another kind of lock", session.ErrInvalid, prefix)
			}
			further.Prefixes = append(further.Prefixes, prefix)
		}
		c.kind = &further
		return further.Check()
	})
}
