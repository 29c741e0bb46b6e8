package session

import (
	"context"
	"errors"
	"fmt"
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
		acl, err = do(ctx, s, RequestInfo{Op: "getACL", Path: s.inward(at)}, always, s.getACL(at))
		if !errors.Is(err, zk.ErrNoNode) || at == "/" {
			return at, acl, err
		}
	}
}

func (s *Session) getACL(full string) starter[[]zk.ACL] {
	return func(done func([]zk.ACL, error)) {
		call(s, request(wire.OpGetACL, full), func(d *wire.Decoder) ([]zk.ACL, error) {
			acl := decodeACL(d)
			if decodeStat(d); d.Bad || len(d.Rest) > 0 {
				return nil, s.rejectReply(fmt.Errorf("an access control list of %s that is malformed", full))
			}
			return acl, nil
		}, done)
	}
}

func decodeACL(d *wire.Decoder) []zk.ACL {
	var acl []zk.ACL
	for n := d.Int32(); n > 0 && !d.Bad; n-- {
		acl = append(acl, zk.ACL{Perms: d.Int32(), Scheme: d.String(), ID: d.String()})
	}
	return acl
}
