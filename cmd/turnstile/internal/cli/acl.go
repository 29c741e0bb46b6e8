package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// rightsText names rights: "the rights READ and CREATE".
func rightsText(rights int32) string {
	var all []string
	for i, name := range []string{"READ", "WRITE", "CREATE", "DELETE", "ADMIN"} { // in ZooKeeper's order of the bits
		if rights&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	if n := len(all); n > 1 {
		return "the rights " + strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return "the right " + strings.Join(all, "")
}

// aclOf returns the list that --acl names, and nil if it is inherited.
func (a *App) aclOf(text string) ([]zk.ACL, error) {
	identities, err := a.connection.identities()
	switch {
	case err != nil:
		return nil, err
	case text == "inherit":
		return nil, nil
	case text == "open":
		return zk.WorldACL(zk.PermAll), nil
	case text != "creator":
		return nil, usagef("--acl %q: want inherit, open or creator", text)
	case len(identities) == 0 && a.connection.tls.Cert == "":
		return nil, usagef("--acl creator: there is no identity that could have rights: see --auth and --auth-file")
	}
	return zk.AuthACL(zk.PermAll), nil
}

// connectFor connects with the list that was chosen for the nodes of a lock. It fails, before anything is made, if this client
// lacks a right that it needs for the lock. The manager can be other than nil with an error.
func (a *App) connectFor(ctx context.Context, opts []session.Option, lock string, f runFlags) (*session.Manager, error) {
	m, err := a.connect(ctx, opts...)
	for err == nil {
		var s *session.Session
		if s, err = m.Session(ctx); err != nil {
			return m, err
		}
		var list []zk.ACL
		list, err = a.listFor(ctx, s, lock, f)
		switch {
		case errors.Is(err, session.ErrLost) && ctx.Err() == nil:
			err = nil
		case err != nil, slices.Equal(list, zk.WorldACL(zk.PermAll)):
			return m, err
		default:
			a.close(m)
			return a.connect(ctx, append(slices.Clip(opts), session.WithACL(list...))...)
		}
	}
	return m, err
}

// listFor returns the list for the nodes of a lock, and looks whether this client has the rights that it needs.
func (a *App) listFor(ctx context.Context, s *session.Session, lock string, f runFlags) (list []zk.ACL, err error) {
	at := lock // the lock's directory, or the nearest node above it that exists
	for list, err = s.ACL(ctx, at); errors.Is(err, zk.ErrNoNode) && at != "/"; list, err = s.ACL(ctx, at) {
		at = path.Dir(at)
	}
	there, needs := at == lock, f.needs()
	switch {
	case errors.Is(err, zk.ErrNoNode): // there is not even the chroot
		list = zk.WorldACL(zk.PermAll)
	case errors.Is(err, zk.ErrNoAuth) && (there || f.list == nil):
		return nil, a.lacks(at, zk.PermRead)
	case errors.Is(err, zk.ErrNoAuth):
		return f.list, nil // it may have the right CREATE all the same
	case err != nil:
		return nil, err
	default:
		if !there && f.list != nil {
			needs = zk.PermCreate
		}
		if missing := lacking(ctx, s, at, needs); missing != 0 {
			return nil, a.lacks(at, missing)
		}
	}
	if f.list != nil {
		return f.list, nil
	}
	// The nodes of contenders get the list of their directory as it is, even if that is open: a client that contends for the
	// lock has to read the nodes of the others.
	identities, err := a.connection.identities()
	open := slices.ContainsFunc(list, func(e zk.ACL) bool { return e.Scheme == "world" && e.Perms&zk.PermAll == zk.PermAll })
	hidden := func(e zk.ACL) bool { return e.Scheme == "digest" && strings.HasSuffix(e.ID, ":x") }
	switch {
	case err != nil:
		return nil, err
	case open && !there && len(identities) > 0:
		return zk.AuthACL(zk.PermAll), nil
	case open:
		return zk.WorldACL(zk.PermAll), nil
	case !slices.ContainsFunc(list, hidden):
		return list, nil
	case !there:
		return nil, withCode(codeRefused, fmt.Errorf("%s: nodes below it would get the access control list that is there, and the servers show all of that only to a client with the right ADMIN. --acl names another list", clean(at)))
	}
	// Nobody finds a contender's node without the right READ in its directory: its name has a random part. So all may read
	// the node.
	known := slices.DeleteFunc(slices.Clone(list), hidden)
	if len(identities) > 0 {
		known = append(known, zk.AuthACL(zk.PermAll)...)
	}
	return append(known, zk.WorldACL(zk.PermRead)...), nil
}

// lacking returns which of some rights this client lacks at a node, by asking the servers: they can be set up so that
// lists do not count, or not for some clients. It changes nothing.
func lacking(ctx context.Context, s *session.Session, dir string, rights int32) (missing int32) {
	child := path.Join(dir, "turnstile-"+rand.Text())
	for right, op := range map[int32]any{
		zk.PermCreate: &zk.CreateRequest{Path: child},
		zk.PermDelete: &zk.DeleteRequest{Path: child, Version: -1},
		zk.PermWrite:  &zk.SetDataRequest{Path: dir, Version: -1},
	} {
		if rights&right == 0 {
			continue
		}
		// There is no such other child, so the transaction fails in any case.
		if _, err := s.Multi(ctx, op, &zk.CheckVersionRequest{Path: child + "-none", Version: 0}); errors.Is(err, zk.ErrNoAuth) {
			missing |= right
		}
	}
	if rights&zk.PermRead != 0 {
		if _, _, err := s.Get(ctx, dir); errors.Is(err, zk.ErrNoAuth) {
			missing |= zk.PermRead
		}
	}
	return missing
}

// lacks is the error for rights that this client lacks at a node.
func (a *App) lacks(at string, rights int32) error {
	return withCode(codeRefused, fmt.Errorf("%s: this client has not got %s there, and needs that. %s", clean(at), rightsText(rights), a.identityText()))
}

// refused gives an error of the servers about the nodes of a lock its exit status, and says in words what it means.
func (a *App) refused(lock string, rights int32, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return withCode(codeRefused, fmt.Errorf("%s: the servers refuse a request. This client needs %s there. %s", clean(lock), rightsText(rights), a.identityText()))
	case errors.Is(err, zk.ErrInvalidACL):
		return withCode(codeRefused, fmt.Errorf("%s: the servers do not take the access control list: they do not know a scheme of --acl, or no identity of this client", clean(lock)))
	}
	return err
}
