package session

import "github.com/turnstile-go/turnstile/internal/core"

var (
	// ErrLost is returned by everything that depends on a session, once the session cannot be
	// trusted any more. Either the server has expired it, or the server could have expired it by
	// now, or (with [WithLossOnSuspend]) the connection broke.
	ErrLost = core.ErrLost
	// ErrClosed is returned by calls on a closed [Manager] and on its sessions.
	ErrClosed = core.ErrClosed
	// ErrUncertain is matched by the error of a Create, Set, Delete or Multi that was sent, or may have been, and was not
	// answered: the connection or the session was lost, the manager was closed, or ctx has ended. The error also matches
	// the reason. The servers may have carried the request out, or may do so in a moment. Its caller knows what that
	// means: it reads what the request should have changed, or sends it again if that does no harm. If the error of one of
	// these calls does not match ErrUncertain, the request has changed nothing.
	ErrUncertain = core.ErrUncertain
	// ErrTooManyNodes is returned by a create of an ephemeral node, and so by a lock, if the session has no room for
	// the node: it owns as many as [WithMaxNodes] allows, or their paths are as long as [WithMaxNodeBytes] allows. The
	// text says which. Nodes that are being created count, and so do nodes whose create was not answered. If deletes of
	// this process are in flight that will make enough room, the call waits for them, and does not fail. Nothing was sent.
	ErrTooManyNodes = core.ErrTooManyNodes
	// ErrTooLong is returned by a read whose answer has more than 64 MiB, and by a request that is
	// probably longer than the server takes (jute.maxbuffer): three connections in a row were lost
	// when it was sent. In the second case the error matches [zk.ErrConnectionClosed] too, because
	// the server could have carried the request out.
	ErrTooLong = core.ErrTooLong
	// ErrUnimplemented is returned if the server does not implement a request. Servers do not
	// create nodes with a TTL unless that is enabled on them (extendedTypesEnabled), and
	// ZooKeeper before 3.5.1 has no containers. Many servers close the connection after they
	// have said so.
	ErrUnimplemented = core.ErrUnimplemented
	// ErrSequence is returned by [Session.Enter] when the sequence counter of the directory is used up, after 2³¹ nodes.
	// Counting starts again when the directory is deleted. Enter does so when it leaves it empty.
	ErrSequence = core.ErrSequence
	// ErrInvalid is returned, before any I/O, for a path, connect string, option or argument that
	// cannot work. The text says what is wrong with it. It is also returned for as long as the servers grant a
	// session timeout that is too short for locks: see [WithMargin].
	ErrInvalid = core.ErrInvalid
)
