package session

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// nodeACL returns the list of new nodes. Nobody may change it.
func (c *config) nodeACL() []zk.ACL { return *c.acl.Load() }

func (c *config) setACL(acl []zk.ACL) {
	own := slices.Clone(acl)
	c.acl.Store(&own)
}

// nearestACL is plumbing.Session.NearestACL.
func (s *Session) nearestACL(ctx context.Context, asked string) (at string, acl []zk.ACL, err error) {
	if err := validatePath(asked); err != nil {
		return "", nil, err
	}
	for at = s.outward(asked); ; at = path.Dir(at) {
		acl, err = do(ctx, s, RequestInfo{Op: "getACL", Path: s.inward(at)}, always, s.getACL(ctx, at))
		if !errors.Is(err, zk.ErrNoNode) || at == "/" {
			return at, acl, err
		}
	}
}

func (s *Session) getACL(ctx context.Context, full string) starter[[]zk.ACL] {
	return func(done func([]zk.ACL, error)) {
		list := func(a *wire.Answer) ([]zk.ACL, error) { return a.ACL, nil }
		call(s, sending{ctx: ctx}, request(wire.OpGetACL, full), nil, list, done)
	}
}
