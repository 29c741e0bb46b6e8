package rwlock

import (
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// The two kinds see the same contenders: Curator's, whose names this package uses, and kazoo's. They
// differ in the first prefix, which is that of their own nodes.
var (
	writing = &kinds.Kind{
		Name:     "write",
		Prefixes: []string{kinds.PrefixWrite, kinds.PrefixRead, kinds.PrefixKazooLock, kinds.PrefixKazooRead},
		Policy:   decide.ReadWrite,
	}
	reading = &kinds.Kind{
		Name:     "read",
		Prefixes: []string{kinds.PrefixRead, kinds.PrefixWrite, kinds.PrefixKazooLock, kinds.PrefixKazooRead},
		Policy:   decide.ReadWrite,
	}
)
