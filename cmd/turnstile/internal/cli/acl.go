package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// connectFor connects so that the nodes of a lock get the access control list of the lock's directory, or of the nearest
// node above. The manager can be other than nil with an error.
func (a *App) connectFor(ctx context.Context, lock string) (*session.Manager, error) {
	m, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.inherited(ctx, m, lock)
	if err != nil || slices.Equal(list, zk.WorldACL(zk.PermAll)) {
		return m, err
	}
	a.close(m)
	return a.connect(ctx, session.WithACL(list...))
}

// close closes a manager. That releases all of its locks.
func (a *App) close(m *session.Manager) {
	if err := m.Close(); err != nil {
		a.log.Warn("the servers have not confirmed the end of the session, and release its locks when it times out", "err", err)
	}
}

// inherited returns the list for the nodes of a lock, by what is at its directory or above.
func (a *App) inherited(ctx context.Context, m *session.Manager, lock string) ([]zk.ACL, error) {
	s, err := m.Session(ctx)
	if err != nil {
		return nil, err
	}
	at := lock
	list, err := s.ACL(ctx, at)
	for ; errors.Is(err, zk.ErrNoNode) && at != "/"; list, err = s.ACL(ctx, at) {
		at = path.Dir(at)
	}
	switch {
	case errors.Is(err, session.ErrLost) && ctx.Err() == nil:
		return a.inherited(ctx, m, lock)
	case errors.Is(err, zk.ErrNoNode): // there is not even the chroot
		return zk.WorldACL(zk.PermAll), nil
	case err != nil:
		return nil, refused(at, toRead, err)
	}
	// The nodes of contenders get the list of their directory as it is, even if that is open: a client that contends for the
	// lock has to read the nodes of the others.
	identities, err := a.connection.identities()
	open := slices.ContainsFunc(list, func(e zk.ACL) bool { return e.Scheme == "world" && e.Perms&zk.PermAll == zk.PermAll })
	hidden := func(e zk.ACL) bool { return e.Scheme == "digest" && strings.HasSuffix(e.ID, ":x") }
	switch {
	case err != nil:
		return nil, err
	case open && at != lock && len(identities) > 0:
		return zk.AuthACL(zk.PermAll), nil
	case open:
		return zk.WorldACL(zk.PermAll), nil
	case !slices.ContainsFunc(list, hidden):
		return list, nil
	}
	// The servers show all of the list only to a client with the right ADMIN. Nobody finds a contender's node without the right
	// READ in its directory: its name has a random part. So all may read the node.
	list = slices.DeleteFunc(list, hidden)
	if len(identities) > 0 {
		list = append(list, zk.AuthACL(zk.PermAll)...)
	}
	return append(list, zk.WorldACL(zk.PermRead)...), nil
}

// refused gives an error of the servers about a node its exit status, and says which rights the client needs there.
func refused(at, rights string, err error) error {
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) {
		return withCode(codeRefused, fmt.Errorf("%s: the servers refuse a request. This client needs %s there. See --auth and --auth-file: %w",
			clean(at), rights, err))
	}
	return err
}

// Rights as refused names them. Those for a change are what a semaphore and a job need, whose directory has data.
const (
	toRead   = "the right READ"
	toLock   = "the rights READ, CREATE and DELETE"
	toChange = "the rights READ, WRITE, CREATE and DELETE"
)
