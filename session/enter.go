package session

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// NewNode is the node that [Session.Enter] makes. It is ephemeral: it goes with the session at the latest.
type NewNode struct {
	// Dir is the directory of the node. Enter makes it if it is missing, and every node above it.
	Dir string
	// Name is the name of the node without its id and its number. The whole name is _c_<id>-<Name><number>, as in
	// _c_6ba7b810-9dad-11d1-80b4-00c04fd430c8-lock-0000000007 for the Name "lock-". The id is new for each Enter. Other
	// clients, such as Curator, go by what follows it. The servers give the numbers, which grow in each directory.
	Name string
	// Data is the data of the node, which may be nil. Nobody may change it before Enter has returned.
	Data []byte
	// Fixed says that the name of the node is Name alone, without an id and a number. One client at a time can have such a
	// node.
	Fixed bool
	// Watch asks for a watch on the children of Dir: see Children of [Listing].
	Watch bool
	// Directory asks for the data of Dir, and a watch on it. The read leaves between the create and the listing, in the same
	// flight. See Data and Directory of [Listing].
	Directory bool
}

// Node is an ephemeral node that [Session.Enter] has made.
type Node struct {
	_ misuse.NoCopy

	// Path is the path of the node.
	Path string
	// Listing is a listing of the directory that shows the node: the node is one of its Names. All nodes that were made in
	// the directory before it, and are still there, are among them. Children is not nil if Watch of NewNode asked for it, and
	// Data, DataStat and Directory tell of the directory if Directory of NewNode asked for that.
	Listing

	node *core.Node
}

// Enter makes an ephemeral node in a directory, and returns it with a listing of the directory that shows it. The
// create and the listing leave together, so that takes one round trip. Locks, elections and memberships are made of
// this.
//
// Enter waits for a connection, and returns when it has the node and the listing, ctx has ended, the session has ended
// or the servers have refused. Missing directories are made as containers, which the servers remove when they have
// become empty again. If one vanishes in the meantime, Enter makes it again.
//
// If the reply to the create is lost with the connection, Enter finds out what became of it. It lists the directory
// again, behind a write that a quorum agrees to, in one flight. If the node is there, Enter takes it: it knows a
// numbered node by its id, and one with a fixed name by its owner and its transaction. If it is not there, Enter creates
// it.
//
// If Enter fails, it leaves nothing behind, and needs no further call. What the create has made, or may yet make, is
// removed in the background, for as long as that takes, and so is a directory that was made in vain. If ctx has ended
// before Enter is called, nothing is sent.
//
// An Enter of a fixed name first waits until all removals of that path by this session have ended, and other calls of
// Enter. So a delete that is repeated does not hit the new node. If the servers refuse such a removal, Enter fails as
// the removal does.
//
// Errors are those of go-zookeeper (zk.ErrNoAuth …), ctx's, or match one of these:
//
//   - zk.ErrNodeExists: there is a node with the fixed name, of this session or of another client. Nothing was changed.
//     Watch the node, and try again when it is gone.
//   - [ErrTooManyNodes]: the session has no room for the node. Nothing was sent.
//   - [ErrSequence]: the numbers of the directory are used up.
//   - [ErrLost], [ErrClosed]: the session has ended, and the node goes with it.
//   - [ErrInvalid]: Dir, Name or Data cannot work. Nothing was sent.
func (s *Session) Enter(ctx context.Context, n NewNode) (*Node, error) {
	misuse.Context(ctx, "session: Session.Enter")
	node, l, err := s.core().Enter(ctx, core.NewNode(n))
	if err != nil {
		return nil, err
	}
	return &Node{Path: node.Path(), Listing: listingOf(l), node: node}, nil
}

// Remove removes the node for certain: see [Session.Remove]. It returns at once, and further calls return the same
// [Removal].
//
// If a reply to a create of the node was lost, Remove also looks for further nodes of the same Enter. If the name is fixed
// and the reply to the delete is lost, the session looks who owns the node before it deletes again: another client can
// have made one meanwhile. It does not look before the first delete: if somebody else has deleted the node, and another client
// has made one of the same fixed name, that one is deleted.
//
// Remove may be called by any number of goroutines at once. It panics if [Session.Enter] has not made the Node.
func (n *Node) Remove(ctx context.Context) *Removal {
	misuse.Context(ctx, "session: Node.Remove")
	if n == nil || n.node == nil {
		panic("session: Node not made by Session.Enter")
	}
	return (*Removal)(n.node.Remove(ctx))
}
