package session

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Session is exactly one ZooKeeper session. [Manager.Session] returns it once it is live. A
// session that has ended stays ended.
//
// All methods may be called by any number of goroutines at once. They panic if no Manager has
// made the Session.
type Session core.Session

// core returns what s is. It panics if s is nil or a zero value.
func (s *Session) core() *core.Session { return (*core.Session)(s).Made() }

// ID returns the session id that ZooKeeper gave.
func (s *Session) ID() int64 { return s.core().ID() }

// Timeout returns the session timeout as negotiated with the server.
func (s *Session) Timeout() time.Duration { return s.core().Timeout() }

// Remaining returns how long the locks of this session stay held if no server answers from now on. It
// computes that at the time of the call. It returns 0 once the session has ended.
func (s *Session) Remaining() time.Duration { return s.core().Remaining() }

// Err returns nil while the session is certain, and after that an error that matches [ErrLost]
// or [ErrClosed]. It reads the clock at the time of the call, and does not depend on a timer. It calls no
// hook, and waits for nothing.
func (s *Session) Err() error { return s.core().Err() }

// Done returns a channel that is closed when the session has ended: when it was lost, or closed
// with its manager. [Session.Err] can report the end earlier.
func (s *Session) Done() <-chan struct{} { return s.core().Done() }

// AfterEnd calls f in a goroutine of its own when the session has ended, or at once if it has ended. Until then it takes no
// goroutine. stop cancels that, and reports whether f will not be called. It does not wait for f. A nil f panics.
func (s *Session) AfterEnd(f func()) (stop func() bool) {
	made := s.core()
	if f == nil {
		panic("session: Session.AfterEnd: nil function")
	}
	return made.AfterEnd(f)
}

// Get returns the data of a node, and its stat.
//
// It returns when the server has answered, ctx has ended or the session has ended. Like
// [Session.Children] and [Session.Exists], it is repeated if the connection is lost. Errors are
// those of go-zookeeper, ctx's, or match [ErrLost], [ErrClosed] or [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Get")
	return s.core().Get(ctx, path)
}

// Children returns the names of a node's children, in no order, and the node's stat. It returns
// and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Children")
	names, shared, err := s.core().Children(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	stat := *shared
	return slices.Clone(names), &stat, nil // the caller may change them
}

// Exists returns the stat of a node, or nil if there is no such node. It returns and fails as Get
// does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Exists")
	return s.core().Exists(ctx, path)
}

// ACL returns the access control list of a node. To a client without the right ADMIN to the node, servers show "x" in place
// of the hash in an entry with the scheme "digest". It returns and fails as Get does, with [zk.ErrNoAuth] for a client that
// has neither the right READ nor ADMIN.
func (s *Session) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	misuse.Context(ctx, "session: Session.ACL")
	return s.core().ACL(ctx, path)
}

// Watch returns a node's data and stat, and a watch that reports what happens to the node next.
// If another goroutine has got them already, the watch is shared and nothing is sent. Data and stat
// are then those of an earlier time, and the node has not changed since as long as the watch is pending.
// If the node does not exist, the error matches [zk.ErrNoNode] and
// there is no watch. Otherwise Watch returns and fails as Get does.
func (s *Session) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.Watch")
	data, stat, w, err := s.core().Watch(ctx, path)
	if err != nil {
		return nil, nil, nil, err
	}
	own := *stat
	return slices.Clip(slices.Clone(data)), &own, (*Watch)(w), nil // the caller may change them
}

// WatchNodes sets watches on the data of several nodes, and returns them in the order of paths. The requests leave in that
// order and in one flight. Each watch is shared as that of Watch is: if there is one already, nothing is sent for it.
// [Watch.Data] tells what the nodes were.
//
// WatchNodes waits for a connection, and returns when all requests are answered, ctx has ended or the session has ended. It
// repeats none of them. If a node is not there, its watch has ended as [WatchDeleted]. If the connection is lost before an
// answer, that watch has ended as [WatchBroken]. Neither is an error. Errors are those of go-zookeeper (zk.ErrNoAuth …) for
// one of the nodes, ctx's, or match [ErrLost], [ErrClosed] or [ErrInvalid]. Without a path, WatchNodes sends nothing.
func (s *Session) WatchNodes(ctx context.Context, paths ...string) ([]*Watch, error) {
	misuse.Context(ctx, "session: Session.WatchNodes")
	all, err := s.core().WatchNodes(ctx, paths...)
	if err != nil {
		return nil, err
	}
	watches := make([]*Watch, len(all))
	for i, w := range all {
		watches[i] = (*Watch)(w)
	}
	return watches, nil
}

// WatchChildren returns the names of a node's children, in no order, the node's stat, and a watch that reports when a
// child is created or deleted next, or the node is deleted. A change of the data of the node or of a child does not end
// the watch. If another goroutine has got them already, the watch is shared and nothing is sent. Names and stat are then
// those of an earlier time, and no child has come or gone since as long as the watch is pending.
//
// If the node does not exist, WatchChildren returns no names and a nil stat, and the watch ends as [WatchChanged] when
// the node is created. The watch may have ended by the time at which WatchChildren returns. Otherwise WatchChildren
// returns and fails as Get does.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	misuse.Context(ctx, "session: Session.WatchChildren")
	w, err := s.core().WatchChildren(ctx, path)
	if err != nil {
		return nil, nil, nil, err
	}
	names, shared := w.Listed()
	if shared == nil {
		return nil, nil, (*Watch)(w), nil
	}
	stat := *shared
	return slices.Clone(names), &stat, (*Watch)(w), nil // the caller may change them
}

// Remove deletes the node at path for certain. It returns at once and needs no further call: the session repeats the
// delete in the background, across reconnects, until the servers say that the node is gone, or the session ends. If
// there is no such node, the removal succeeds. If there is a connection, what the caller sends next comes after the
// delete.
//
// If the servers refuse (zk.ErrNoAuth, zk.ErrNotEmpty), the [Removal] reports that at once. The session goes on to
// retry slowly: first after about a second, later after at most the session timeout or 30 s.
//
// A delete that is repeated deletes whatever stands at the path by then. So Remove is for names that only one node ever
// has, such as numbered ones. For a fixed name there is [Node.Remove]. ctx is for the hooks of a [Trace] only: the
// removal begins and goes on also if ctx has ended. With a path that is not valid, the Removal fails at once with
// [ErrInvalid].
func (s *Session) Remove(ctx context.Context, path string) *Removal {
	misuse.Context(ctx, "session: Session.Remove")
	made := s.core()
	if err := misuse.ValidatePath(path); err != nil {
		return (*Removal)(core.FailedRemoval(err))
	}
	return (*Removal)(made.Remove(ctx, path))
}

// Removing reports whether a removal of a path by this session is under way: one of Remove or of [Node.Remove] that the
// servers have not confirmed. It sends nothing.
func (s *Session) Removing(path string) bool { return s.core().Removing(path) }

// Sync returns when the server that the session is connected to has caught up with the leader. It
// returns and fails as Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	misuse.Context(ctx, "session: Session.Sync")
	return s.core().Sync(ctx, path)
}

// Create makes a node and returns its path. It makes missing nodes above it as well, as containers. For a sequential
// mode the path ends with a number. Create returns when the server has answered, ctx has ended or the session has
// ended. An ephemeral node needs room ([WithMaxNodes], [WithMaxNodeBytes]). If there is none, Create waits for nodes
// that are about to go: see [ErrTooManyNodes].
//
// Errors are those of go-zookeeper ([zk.ErrNodeExists], [zk.ErrNoNode], [zk.ErrNoAuth] …), ctx's,
// or match [ErrLost], [ErrClosed], [ErrTooManyNodes] or [ErrInvalid]. A create whose reply was
// lost is not repeated, because the server may have carried it out. Its error matches [ErrUncertain].
//
// If ctx ends while the request is in flight, the session deletes the node that the request
// makes. It does that in the background, and retries the delete across reconnects until the
// server says that the node is gone, or the session ends. If the reply to the request is lost as
// well, the session first has to find the node:
//
//   - It finds an ephemeral node by its path, owner and data. Until then, further creates of
//     that path by this session wait. If the replies to several creates of sequential nodes
//     with one path and the same data were lost, their nodes look the same. Then the session
//     deletes as many nodes as there were cancelled creates.
//   - It leaves a node of any other mode, because another client could have made the node at
//     that path. The session logs that.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode CreateMode) (string, error) {
	misuse.Context(ctx, "session: Session.Create")
	return s.core().Create(ctx, path, data, core.CreateMode(mode))
}

// Set replaces the data of a node if the node has the given version (-1: any version), and
// returns the new stat.
//
// A set whose reply was lost is not repeated, because the server may have carried it out. Its
// error matches [ErrUncertain]. Otherwise Set returns and fails as Get does.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Set")
	return s.core().Set(ctx, path, data, version)
}

// Delete removes a node if it has the given version (-1: any version). It is repeated if its reply was lost. If a
// repeated delete finds no node, Delete reports success. If it was not answered when ctx or the session ends, the error
// matches [ErrUncertain]. Otherwise Delete returns and fails as Get does.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	misuse.Context(ctx, "session: Session.Delete")
	return s.core().Delete(ctx, path, version)
}

// Multi carries out all of ops, or none. An operation is a *[zk.CreateRequest],
// *[zk.SetDataRequest], *[zk.DeleteRequest] or *[zk.CheckVersionRequest] with a path below the
// chroot. Multi does not change the operations.
//
// A create without an ACL gets that of [WithACL]. Ephemeral nodes need room, as those of [Session.Create] do. Nodes that
// the same multi deletes make room for them. Multi cannot create containers, or nodes with a TTL.
//
// Multi returns the result of each operation, and the first error among them. A multi whose
// reply was lost is not repeated, because the server may have carried it out. Its error matches
// [ErrUncertain]. Otherwise Multi returns and fails as Get does.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	misuse.Context(ctx, "session: Session.Multi")
	return s.core().Multi(ctx, ops...)
}
