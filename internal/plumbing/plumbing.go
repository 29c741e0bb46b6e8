// Package plumbing is what package session does for the lock packages of this module and for
// nobody else: it is not in the public API.
//
// [Of] and [OfManager] are the way in:
//
//	creation, err := plumbing.Of(s).StartCreate(ctx, path, data, zk.FlagEphemeral)
//
// This package cannot import session, which imports it. So package session sets the function
// variables here when it is initialized, and a type of session appears here under a name of
// this package ([WatchEvent]) or as a type parameter ([TraceHooks]).
package plumbing

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"
)

// What package session provides. The functions are set before any importer of session runs.
var (
	// Of returns the plumbing of s, which must be a *session.Session. It panics if no
	// Manager has made the session.
	Of func(s any) Session

	// OfManager returns the plumbing of m, which must be a *session.Manager. It panics if
	// session.Connect has not made the manager.
	OfManager func(m any) Manager

	// ValidatePath returns an error that matches session.ErrInvalid if path is not the absolute
	// path of a node by ZooKeeper's rules. It does no I/O.
	ValidatePath func(path string) error

	// Uncertain reports whether the reply to a failed create, set, delete or multi was lost, so
	// that the server may have carried it out. It does not report a request whose ctx ended
	// while the request was in flight. The server may have carried out that one too.
	Uncertain func(err error) bool
)

// OpAcquire is the Op of a session.RetryInfo when an acquisition is tried again: it lost its
// session or its node, and joins the queue with a new node.
const OpAcquire = "acquire"

// Manager is the plumbing of a session.Manager.
type Manager interface {
	// Chroot returns the path of the connect string below which all nodes lie, or "/" if the
	// connect string has none.
	Chroot() string
	// Logger returns the logger of session.WithLogger, or the default.
	Logger() *slog.Logger
	// Retry returns the function of session.WithRetry, which never returns nil. It is for loops
	// that are made of requests.
	Retry() func() backoff.BackOff
	// Trace returns the *session.Trace of session.WithTrace. Use TraceHooks instead.
	Trace() any
	// AddTrace adds hooks, which must be a session.Trace, to those of session.WithTrace. They are
	// not told how a thing ends that had begun before. The first call of a State hook tells the present state, as
	// that of Manager.Subscribe does.
	AddTrace(t any)
	// CallLate has hooks called, which are those for a lock that was lost. It returns at once. One goroutine of the manager
	// makes all such calls, in the order in which they were asked for. If a hook blocks, a bounded number of calls waits, and
	// further ones are dropped, which the log tells.
	CallLate(hooks func())
	// Server returns the host and port of the server that the live session is connected to, or was
	// connected to last. It returns "" if there is no session.
	Server() string
	// Live returns the *session.Session of the manager's state, or nil if there is none. It does not
	// wait for one. Use LiveSession instead.
	Live() any
	// Timeout returns the session timeout that the manager asks the servers for.
	Timeout() time.Duration
	// Failure returns why there is no connection, as far as that is known, and otherwise nil. It does
	// not wait.
	Failure() error
	// Silence returns an error that says from which server, and for how long, no answer has come to a request in flight. It
	// returns nil for a silence of less than a second, which a slow server can cause. It does not wait.
	Silence() error
	// FirstWarning reports whether it is called with this path and transaction (zxid) for the first
	// time, so that a warning about a node is logged once. It forgets old nodes when there are many.
	FirstWarning(path string, zxid int64) bool
	// SetACL changes the list of session.WithACL, for nodes that are created from now on.
	SetACL(acl []zk.ACL)
	// SetWindow bounds the calls in flight of each connection by a number, or not at all if it is negative. 0 means
	// what users have: the number follows the times of the answers. With 1, creates and deletes that come while a
	// request is under way leave in one transaction. It is for tests.
	SetWindow(calls int)
}

// LiveSession returns the session that m has at present, or nil if it has none. It does not wait for
// one, and the session may have ended. m must be a *session.Manager, and S session.Session.
func LiveSession[S any](m any) *S { return OfManager(m).Live().(*S) }

// TraceHooks returns the hooks of session.WithTrace, and those of AddTrace. m must be a *session.Manager, and T must be
// session.Trace.
func TraceHooks[T any](m any) *T { return OfManager(m).Trace().(*T) }

// Session is the plumbing of a session.Session. All methods may be called by any number of
// goroutines at once.
type Session interface {
	// AfterEnd calls f in a goroutine of its own when the session has ended, or at once if it
	// has ended already.
	AfterEnd(f func())

	// MakeParents makes dir and every missing node above it, the chroot included. It makes
	// container nodes, which the server removes when they have become empty again, or persistent
	// nodes if the server knows no containers.
	//
	// It returns when dir existed at some moment, ctx ended, the session ended or the server
	// refused. The server can remove a container again at any time.
	MakeParents(ctx context.Context, dir string) error

	// NearestACL returns the access control list of the node at path, or else of the nearest node above it. at is the
	// path of that node with the chroot, which it can be above. It fails with zk.ErrNoAuth, and returns at, if this
	// client has neither the right READ nor ADMIN there. To a client without ADMIN, servers show "x" in place of the
	// hash of a digest.
	NearestACL(ctx context.Context, path string) (at string, acl []zk.ACL, err error)

	// NodeBytes returns how much a node takes of session.WithMaxNodeBytes, by the path that its create asks for.
	NodeBytes(path string, sequential bool) int

	// Reserve waits for a connection, and then for room for ephemeral nodes, by the limits of session.WithMaxNodes and
	// session.WithMaxNodeBytes. It sets the room aside until End of the Room. Callers get room in the order in which
	// they came, as soon as deletes that are on their way have made enough. Reserve fails with ctx's error, the
	// session's, or at once with session.ErrTooManyNodes if what is on its way is not enough.
	Reserve(ctx context.Context, w Want) (Room, error)

	// Extend adds to r, as Reserve does, what it lacks for further nodes. It does nothing after End of r.
	Extend(ctx context.Context, r Room, w Want) error

	// Leaving says that the caller is about to remove a node of ours: others that need room may wait for it.
	Leaving(path string)

	// OnShortage sets a function that is called when the room that is on its way is not enough. The function gives up
	// places that are kept although nobody holds them, until they have so many nodes and bytes, and starts to remove their
	// nodes. It returns false if there is none. It must not block.
	OnShortage(spare func(nodes, bytes int) bool)

	// StartCreate waits for a connection and then sends a create, without waiting for the
	// answer: the caller can send further requests at once. flags is one of zk.FlagPersistent,
	// zk.FlagEphemeral, zk.FlagSequence and zk.FlagEphemeralSequential. A sequential create adds
	// a number to path.
	//
	// An ephemeral node takes its room out of r. If r is nil, or has too little, StartCreate waits for room as Reserve
	// does. If the reply is lost, the node counts until the caller has called Resolve of the Creation.
	//
	// If StartCreate returns no error, the node may come to exist even if ctx ends, and the
	// caller must see to its removal. An error means that nothing was sent. It is ctx's, the
	// session's, session.ErrTooManyNodes or session.ErrInvalid.
	StartCreate(ctx context.Context, r Room, path string, data []byte, flags int32) (Creation, error)

	// StartMulti is StartCreate for a session.Session.Multi, which has at least one create. If it
	// returns no error, all of the nodes may come to exist, or none.
	StartMulti(ctx context.Context, r Room, ops ...any) (Transaction, error)

	// SharedSync returns when the server that the session is connected to has caught up with the leader
	// by a sync that was sent after a moment, which Creation.Syncs has returned. Callers share such a
	// sync: one is enough for all whose replies were lost with a connection. SharedSync fails as
	// Session.Sync does.
	SharedSync(ctx context.Context, path string, after int64) error

	// Adopt counts an ephemeral node that was found, unless it is counted. It takes the room out of r, which may be nil.
	Adopt(r Room, path string)

	// StartWatch waits for a connection until ctx ends, and then sets a data watch without
	// waiting for the answer: the caller can send further requests at once. The answer is there
	// when Watch.Ready is closed. The request is not repeated if its connection is lost.
	StartWatch(ctx context.Context, path string) (Watch, error)

	// StartWatches waits for a connection until ctx ends, and then sets data watches on nodes, of which there
	// is at least one, with one request. It does not wait for the answer, and no data comes with it: a later
	// StartWatch or Watch of a path shares the watch, and asks for the data. The watch on a node that is gone
	// ends as WatchDeleted before its Set is closed. A watch may end as WatchChanged if the node was changed just
	// before.
	StartWatches(ctx context.Context, paths ...string) ([]Watch, error)

	// InTurn calls f, which must not block. One goroutine of the session calls all such functions, in order: when a
	// connection breaks, thousands of watches end at once.
	InTurn(f func())

	// GiveBack says that the caller no longer needs a watch of StartWatches. It is called once for each time that
	// StartWatches has returned the watch, which then must not be waited for any more. When all callers have given a
	// watch back, the session forgets it: if the client may not read the node, the server never tells when that
	// goes. A StartWatch or Watch of the path keeps the watch until it ends.
	GiveBack(path string, w Watch)

	// Watch is the method of session.Session of that name, with the plumbing of the watch.
	Watch(ctx context.Context, path string) ([]byte, *zk.Stat, Watch, error)

	// WatchChildren returns a watch that ends as WatchChanged when a child of the node is created or
	// deleted, and as WatchDeleted with the node. If there is no such node, it ends as WatchChanged
	// when the node is created. Goroutines of one session share the watch. Its Result has no data.
	// WatchChildren returns when the watch is set, and fails as Watch does, but not with
	// zk.ErrNoNode.
	WatchChildren(ctx context.Context, path string) (Watch, error)

	// Children is Children of session.Session. The caller must not change what it returns: thousands of contenders
	// may share it.
	Children(ctx context.Context, path string) ([]string, *zk.Stat, error)

	// List is Children of this interface, and sets a watch on the children in the same request. The
	// watch ends as that of WatchChildren does, and is not shared. While it is pending, no child was
	// created or deleted since the listing, as far as the server has told, and the connection of the
	// listing lasts. It may have ended by the time at which List returns, also by an event that came
	// before the listing.
	List(ctx context.Context, path string) ([]string, *zk.Stat, Watch, error)

	// Forget ends a watch as broken for all callers that share it. It is for a watch whose event
	// must have been lost, because the node at its path is not the one it was set on. The watch
	// would be shared for as long as the connection lasts.
	Forget(path string, w Watch)

	// Remove deletes a node for certain. It returns at once and needs no further call: the
	// session retries the delete in the background, across reconnects, until the server says
	// that the node is gone, or the session ends. If the node is gone already, the removal
	// succeeds.
	//
	// If the server refuses (zk.ErrNoAuth), the Removal reports that at once, and the session
	// goes on to retry the delete slowly: first after about a second, later after at most the
	// session timeout or 30 s. ctx is for the hooks of session.Trace only. The removal goes on
	// after ctx has ended.
	Remove(ctx context.Context, path string) Removal

	// RemoveAfter is Remove, except that the delete is sent once after is closed. If after is
	// nil, the delete is sent at once.
	RemoveAfter(ctx context.Context, path string, after <-chan struct{}) Removal

	// Removals returns an empty set of removals, which one transaction carries out if it can.
	Removals() Removals

	// Sweep deletes, as Remove does, the children of dir whose names match. It finds the node of
	// a create whose reply was lost. It syncs first, so that it sees every node that was created
	// before the call. lost is that create, whose room is free when the sweep has succeeded, or nil.
	Sweep(ctx context.Context, dir string, match func(name string) bool, lost Creation) Removal

	// Claim waits until nobody else in this session has a claim to the path. Claims are granted
	// in the order of the calls. Claim sends nothing. It fails with ctx's error, the session's,
	// or session.ErrInvalid for a bad path.
	Claim(ctx context.Context, path string) (Claim, error)

	// TryClaim is Claim, except that it does not wait. It reports whether it got the claim.
	TryClaim(path string) (Claim, bool)
}

// Creation is a create in flight: see Session.StartCreate.
type Creation interface {
	// Answered returns a channel that is closed when the create has ended: it was answered, or its
	// connection or its session was lost.
	Answered() <-chan struct{}
	// Done returns a channel that is closed when the hooks have been told of that. A caller that gives the node up
	// does not wait for them.
	Done() <-chan struct{}
	// Result returns the path of the node, or an error that says why there is none or why that
	// is not known: see Uncertain. Call it once Answered is closed.
	Result() (string, error)
	// After returns a transaction id (zxid) that is older than the node: the latest that a
	// server had told this session when the create was sent. It returns 0 if there was none.
	After() int64
	// Syncs returns the moment when the create ended, for Session.SharedSync. Call it once Answered is
	// closed.
	Syncs() int64
	// Resolve says what became of a create whose reply was lost: the path of its node, or "" if it has made none, or
	// one that is gone. It does nothing if that is known.
	Resolve(path string)
	// Leave says that the caller will remove the node, also if the create is still in flight: others that need room
	// may wait for it.
	Leave()
}

// Want is what Session.Reserve sets aside room for.
type Want struct {
	Nodes, Bytes int      // see Session.NodeBytes
	Deletes      []string // nodes that the transaction deletes which creates the others

	// Yield, if not nil, is called if there is too little room. It has a node of ours removed, and says so with
	// Session.Leaving. It must not block.
	Yield func()

	// Over is closed when the nodes are about to go. If it is nil, that is when the ctx of Reserve ends.
	Over <-chan struct{}
}

// Room is room for ephemeral nodes that is set aside. If a create fails that took its room out of it, or its node goes,
// the room comes back until End. One goroutine uses it at a time.
type Room interface {
	// End frees the rest of it. Nodes keep their room until they are gone. Further calls do nothing.
	End()
}

// Transaction is a multi in flight: see Session.StartMulti.
type Transaction interface {
	// Creation returns the create that is the operation with an index. The creates of a transaction
	// are done at the same time, and have the same error.
	Creation(i int) Creation
}

// Removals are guaranteed deletes of several nodes of one session. One goroutine uses it.
type Removals interface {
	// Remove is Session.Remove, except that nothing is sent before Start is called.
	Remove(ctx context.Context, path string) Removal
	// Start must be called once, after the last Remove. It sends one transaction that deletes all of
	// the nodes. If the transaction fails, or its reply is lost, each node is deleted by itself, for
	// certain. Start does not wait. ctx is for hooks only.
	Start(ctx context.Context)
}

// Removal is a guaranteed delete in progress.
type Removal interface {
	// Done returns a channel that is closed when the server has said that the node is gone, when
	// the server has refused for the first time, or when the session has ended, which removes
	// the node. After a refusal the session goes on trying, more slowly.
	Done() <-chan struct{}
	// Err returns nil if the server has said that the node is gone. Otherwise it returns the
	// session's error or the server's refusal. Call it once Done is closed.
	Err() error
}

// Claim is a session's right to have an ephemeral node at a path at which other sessions want a
// node too. A session has at most one claim to a path at a time. While the claim lasts, a node
// at the path that this session owns is the claim's node. That holds even if the reply to its
// create was lost, and even if somebody has overwritten its data, so a uuid in the data could
// not tell as much.
//
// The claim ends with End, or when Remove has removed the node.
type Claim interface {
	// Path returns the path that is claimed.
	Path() string
	// Owns reports whether a node at the path that has this stat is the claim's.
	Owns(stat *zk.Stat) bool
	// End ends the claim. At that time no create of the claim's node may be in flight, and every
	// node it made must have been removed with Remove. Further calls do nothing.
	End()

	// Remove deletes the claim's node for certain, if it is there, as Session.Remove does. It
	// never deletes a node of another session.
	//
	// For that it does not simply repeat a delete whose reply was lost. If the server carried
	// that delete out, a node of another session may stand at the path by now. So before the
	// next delete it syncs and compares the node's owner. By then the earlier delete has been
	// carried out or never will be, because servers take nothing from a session's old connection
	// once it has a new one. Only an operator can delete the node between the comparison and the
	// next delete. In that case the delete may hit a node that another session has just made.
	//
	// standing, if not nil, is the stat of the claim's node, which is certain to be there as far
	// as the present connection has told. Then the first delete is sent without a look. standing
	// must not change any more.
	//
	// The claim ends when the node is gone, or with the session. If the server refuses, the
	// removal goes on in the background, and the claim lasts until the removal has succeeded.
	// ctx is for the hooks of session.Trace only. The removal goes on after ctx has ended. lost is a create of the
	// claim's node whose reply was lost, or nil.
	Remove(ctx context.Context, standing *zk.Stat, lost Creation) Removal
}

// Watch is a session.Watch before its answer has come. Goroutines of one session that watch the
// same node share one Watch.
type Watch interface {
	// Set returns a channel that is closed when the server has answered to a request that sets the watch. If it is
	// not set, the watch has ended by then.
	Set() <-chan struct{}
	// Answered reports whether the node's data, or a refusal, is there.
	Answered() bool
	// Ready returns a channel that is closed when the node's data, or a refusal, is there. That of
	// StartWatches is never there if nobody has asked for it.
	Ready() <-chan struct{}
	// Result returns the node's data and stat, as the server has told them, which must not be changed.
	// If the watch was not set, the error is zk.ErrNoNode, another refusal, or that of a lost
	// connection: see Uncertain. Then the watch ends as WatchBroken. Call it once Ready is closed.
	Result() ([]byte, *zk.Stat, error)
	// Event returns what ended the watch, or WatchPending.
	Event() WatchEvent
	// Notify sends ch a value, without blocking, when the watch ends, or at once if it has ended
	// already. ch should have room for one value. stop cancels that.
	Notify(ch chan<- struct{}) (stop func())
	// AtEvent is AfterEvent for a function that does not block, and takes no lock of a Watch. It is called with locks held.
	AtEvent(f func()) (stop func())
	// AfterEvent calls f in a goroutine of its own when the watch ends, or at once if it has
	// ended already. stop cancels that.
	AfterEvent(f func()) (stop func())
}

// WatchEvent is session.WatchEvent, with the same values.
type WatchEvent int

// The events: see package session.
const (
	WatchPending WatchEvent = iota
	WatchDeleted
	WatchChanged
	WatchBroken
)
