package core

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// NodeACL returns the list of new nodes. Nobody may change it.
func (c *Config) NodeACL() []zk.ACL { return *c.acl.Load() }

// SetACL sets the list of nodes that are created from now on.
func (c *Config) SetACL(acl []zk.ACL) {
	own := slices.Clone(acl)
	c.acl.Store(&own)
}

// NearestACL returns the access control list of the node at path, or else of the nearest node above it. at is the
// path of that node with the chroot, which it can be above. It fails with zk.ErrNoAuth, and returns at, if this
// client has neither the right READ nor ADMIN there. To a client without ADMIN, servers show "x" in place of the
// hash of a digest.
func (s *Session) NearestACL(ctx context.Context, asked string) (at string, acl []zk.ACL, err error) {
	if err := misuse.ValidatePath(asked); err != nil {
		return "", nil, err
	}
	for at = s.outward(asked); ; at = path.Dir(at) {
		acl, err = do(ctx, s, hooks.RequestInfo{Op: "getACL", Path: s.inward(at)}, always, s.getACL(ctx, at))
		if !errors.Is(err, zk.ErrNoNode) || at == "/" {
			return at, acl, err
		}
	}
}

func (s *Session) getACL(ctx context.Context, full string) starter[[]zk.ACL] {
	return func(done func([]zk.ACL, error)) {
		list := func(a *codec.Answer) ([]zk.ACL, error) { return a.ACL, nil }
		call(s, sending{ctx: ctx}, request(codec.OpGetACL, full), nil, list, done)
	}
}
