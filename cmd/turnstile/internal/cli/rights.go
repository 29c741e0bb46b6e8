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

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/session"
)

// Rights that a command needs in the directory of a lock. The first contender of a semaphore writes its limit there.
const (
	rightsOfLock      int32 = zk.PermRead | zk.PermCreate | zk.PermDelete
	rightsOfSemaphore int32 = rightsOfLock | zk.PermWrite
	rightsOfResize    int32 = zk.PermRead | zk.PermWrite | zk.PermCreate
	rightsOfReset     int32 = zk.PermRead | zk.PermWrite | zk.PermDelete
)

// connector connects with the options of a command, and more of them.
type connector func(ctx context.Context, more ...session.Option) (*session.Manager, error)

// useACL returns a manager that makes nodes with the list that was chosen. That is m if the list is the one that managers
// have by default. Otherwise useACL closes m, and connects again. It fails, before anything is made, if this client lacks a
// right that it needs for the lock at a path. The caller closes the manager that it returns, also with an error.
func (a *App) useACL(ctx context.Context, m *session.Manager, connect connector, lock string, c aclChoice, needs int32) (*session.Manager, error) {
	for {
		s, err := m.Session(ctx)
		if err != nil {
			return m, err
		}
		list, err := a.chooseACL(ctx, s, lock, c, needs)
		switch {
		case errors.Is(err, session.ErrLost) && ctx.Err() == nil:
			continue
		case err != nil, slices.Equal(list, zk.WorldACL(zk.PermAll)):
			return m, err
		}
		again, err := connect(ctx, session.WithACL(list...))
		if err != nil {
			return m, err
		}
		a.close(m)
		return again, nil
	}
}

// nearestACL returns the list of the lock's directory, or else of the nearest node above it. at is the path of that
// node with the chroot, which it can be above.
func (a *App) nearestACL(ctx context.Context, s *session.Session, chroot, lock string) (at string, list []zk.ACL, err error) {
	for at = lock; ; at = path.Dir(at) {
		list, err = s.ACL(ctx, at)
		switch {
		case errors.Is(err, zk.ErrNoNode) && at != "/":
			continue
		case errors.Is(err, zk.ErrNoNode) && chroot != "/":
			return a.aboveChroot(ctx, path.Dir(chroot))
		}
		return path.Join(chroot, at), list, err
	}
}

// aboveChroot is nearestACL for a chroot that does not exist. It has a session of its own, since that of a chroot sees
// nothing else.
func (a *App) aboveChroot(ctx context.Context, dir string) (at string, list []zk.ACL, err error) {
	opts, err := a.sessionOptions()
	if err != nil {
		return "", nil, err
	}
	servers, _ := ensemble.Split(a.connection.connectString())
	m, err := a.connectTo(ctx, strings.Join(servers, ","), opts...)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = m.Close() }()
	s, err := m.Session(ctx)
	if err != nil {
		return "", nil, err
	}
	return a.nearestACL(ctx, s, "/", dir)
}

// chooseACL returns the list for the nodes of a lock.
func (a *App) chooseACL(ctx context.Context, s *session.Session, lock string, c aclChoice, needs int32) ([]zk.ACL, error) {
	identities, err := a.connection.identities()
	if err != nil {
		return nil, err
	}
	_, chroot := ensemble.Split(a.connection.connectString())
	if chroot == "" {
		chroot = "/"
	}
	at, list, err := a.nearestACL(ctx, s, chroot, lock)
	there := at == path.Join(chroot, lock)
	switch {
	case errors.Is(err, zk.ErrNoAuth) && there:
		return nil, a.lacks(at, zk.PermRead)
	case errors.Is(err, zk.ErrNoAuth) && c.inherit:
		return nil, withCode(codeRefused, fmt.Errorf("%w. Nodes below it would get the access control list that is there: --acl names another one", a.lacks(at, zk.PermRead)))
	case errors.Is(err, zk.ErrNoAuth):
		return c.list, nil // it may have the right CREATE all the same
	case err != nil:
		return nil, err
	case !there && c.inherit:
		needs |= zk.PermCreate
	case !there:
		needs = zk.PermCreate
	}
	if missing := lacking(ctx, s, chroot, at, needs&^possible(list, identities)); missing != 0 {
		return nil, a.lacks(at, missing)
	}
	if !c.inherit {
		return c.list, nil
	}
	return inherited(at, list, there, len(identities) > 0)
}

// inherited returns the list of nodes below a directory that has a list. there says that the directory is that of the lock.
//
// The nodes of contenders get the list of their directory as it is, even if that is open: a client that contends for the
// lock has to read the nodes of the others.
func inherited(at string, list []zk.ACL, there, identified bool) ([]zk.ACL, error) {
	switch {
	case isOpen(list) && !there && identified:
		return zk.AuthACL(zk.PermAll), nil
	case isOpen(list):
		return zk.WorldACL(zk.PermAll), nil
	case !slices.ContainsFunc(list, hidden):
		return list, nil
	case !there:
		return nil, withCode(codeRefused, fmt.Errorf("%s: nodes below it would get the access control list that is there, and the servers show all of that only to a client with the right ADMIN. --acl creator, or --acl with a list, says which clients get rights", clean(at)))
	}
	// Nobody finds a contender's node without the right READ in its directory: its name has a random part. So all may read
	// the node.
	known := slices.DeleteFunc(slices.Clone(list), hidden)
	if identified {
		known = append(known, zk.AuthACL(zk.PermAll)...)
	}
	return append(known, zk.WorldACL(zk.PermRead)...), nil
}

// lacking returns which of some rights this client lacks at a node, by asking the servers: they can be set up so that
// lists do not count, or not for some clients. It changes nothing. Above the chroot it cannot ask, and returns 0.
func lacking(ctx context.Context, s *session.Session, chroot, at string, rights int32) (missing int32) {
	dir := at
	if chroot != "/" {
		rest, below := strings.CutPrefix(at, chroot)
		if !below || rest != "" && rest[0] != '/' {
			return 0
		}
		dir = path.Join("/", rest)
	}
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

// identityText says who this client is for the servers, and how to be another one.
func (a *App) identityText() string {
	identities, _ := a.connection.identities()
	var names []string
	for _, i := range identities {
		names = append(names, clean(i.name()))
	}
	switch {
	case len(names) > 0:
		return "Its identity is " + strings.Join(names, " and ") + ": see --auth and --auth-file"
	case a.connection.tls.Cert != "":
		return "Its certificate is that of --cert, and it has no other identity: see --auth and --auth-file"
	}
	return "It has no identity: see --auth and --auth-file"
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

// refusedDelete is refused for the delete of a node. That takes a right to the directory.
func (a *App) refusedDelete(node string, err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return a.lacks(path.Dir(node), zk.PermDelete)
	}
	return err
}
