package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
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
	// Fixed says that the name of the node is Name alone, without an id and a number. One client at a time can have it.
	Fixed bool
	// Watch asks for a watch on the children of Dir: see Children of [Listing].
	Watch bool
	// Directory asks for the data of Dir, and a watch on it: see Data and Directory of [Listing]. The read leaves between
	// the create and the listing.
	Directory bool
}

// Node is an ephemeral node that [Session.Enter] has made.
type Node struct {
	_ misuse.NoCopy

	// Path is the path of the node.
	Path string
	// Listing is a listing of the directory that has the node, and all nodes that were made before it and are still there.
	// A caller that keeps the Node for long can set it to nil.
	*Listing

	entry   *entry
	mu      sync.Mutex
	removal *Removal // nil before Remove
}

// entry is an Enter in progress, and then what the session has to know to remove its node.
type entry struct {
	s     *Session
	dir   string
	asked string // the path of the create, without the number
	data  []byte
	fixed bool        // the name has neither an id nor a number
	lists ListOptions // of its listings
	place *place      // what is counted of the node

	node    string // its path; "" while there is none, or it is not known
	doubt   bool   // a reply was lost at some time: there may be a second node
	lost    *link  // the connection with which the last such reply was lost; nil if a server has answered that it knows no more
	founded bool   // the entry has made the directory
	pending bool   // the caller has gone while a create was in flight: a goroutine sees to what it makes

	// These tell a node with a fixed name from others at its path: an earlier transaction than after, or a later one than
	// upTo, has made those.
	after, upTo int64
}

// refusedAfter is after how many lost connections in a row a request counts as too long for the servers. Connections are
// lost for other reasons too.
const refusedAfter = 3

// idHead begins the names of numbered nodes, as Curator's protected ones have it.
const idHead = "_c_"

// Enter makes an ephemeral node in a directory, and returns it with a listing of the directory that shows it. The create
// and the listing leave together, so that takes one round trip. Locks, elections and memberships are made of this.
//
// Enter waits for a connection, and returns when it has the node and the listing, ctx has ended, the session has ended or
// the servers have refused. It makes missing directories as containers, which the servers remove when they have become empty
// again.
//
// If the reply to the create is lost with the connection, Enter lists the directory behind a write that a quorum agrees to.
// If the node is there, Enter takes it: it knows a numbered node by its id, and one with a fixed name by its owner and its
// transaction. If it is not there, Enter creates it again.
//
// If Enter fails, it leaves nothing behind, and needs no further call. What the create has made, or may yet make, is
// removed in the background, for as long as that takes, and so is a directory that was made in vain. If ctx has ended
// before Enter is called, nothing is sent.
//
// An Enter of a fixed name first waits until other calls of Enter and all removals of that path by this session have ended:
// a delete that is repeated must not hit the new node. If the servers refuse such a removal, Enter fails as it does.
//
// Errors are those of go-zookeeper (zk.ErrNoAuth …), ctx's, or match one of these:
//
//   - zk.ErrNodeExists: there is a node with the fixed name, of this session or of another client. Watch it, and try again
//     when it is gone.
//   - [ErrTooManyNodes]: the session has no room for the node. Nothing was sent.
//   - [ErrSequence]: the numbers of the directory are used up.
//   - [ErrLost], [ErrClosed]: the session has ended, and the node goes with it.
//   - [ErrInvalid]: Dir, Name or Data cannot work. Nothing was sent.
func (s *Session) Enter(ctx context.Context, n NewNode) (*Node, error) {
	misuse.Context(ctx, "session: Session.Enter")
	s.check()
	e := &entry{
		s: s, dir: n.Dir, data: n.Data, fixed: n.Fixed, upTo: math.MaxInt64,
		lists: ListOptions{Data: n.Directory, Watch: n.Directory, Children: n.Watch},
	}
	name := n.Name
	if !n.Fixed {
		name = idHead + uuid.NewString() + "-" + n.Name
	}
	e.asked = strings.TrimSuffix(n.Dir, "/") + "/" + name // path.Join would make a valid path of some that are not
	var bad error
	if n.Fixed && n.Name == "" || strings.Contains(n.Name, "/") {
		bad = misuse.Invalidf("%q is not the name of a node", n.Name)
	}
	if err := errors.Join(misuse.ValidatePath(n.Dir), bad, misuse.ValidatePath(e.asked), checkData(n.Data)); err != nil {
		return nil, err
	}
	if _, err := s.ready(ctx); err != nil { // it checks ctx first
		return nil, opError("create", e.asked, err)
	}
	if n.Fixed {
		if err := s.takeName(ctx, e.asked); err != nil {
			return nil, opError("create", e.asked, err)
		}
	}
	var err error
	if e.place, err = s.room.take(s.cfg.outward(e.asked), !n.Fixed); err != nil {
		err = opError("create", e.asked, err)
	}
	e.after = s.latest.Load()
	var l *Listing
	if err == nil {
		l, err = e.enter(ctx)
	}
	if err != nil {
		l.forget()
		if !e.pending {
			e.undo(ctx)
		}
		return nil, err
	}
	if n.Fixed {
		s.fixed.unlock(e.asked)
	}
	e.data, e.asked = nil, e.node[:len(e.asked)] // the same text, which takes its memory once
	return &Node{Path: e.node, Listing: l, entry: e}, nil
}

// Remove removes the node for certain: see [Session.Remove]. It returns at once, and further calls return the same
// [Removal]. Any number of goroutines may call it at once. It panics if [Session.Enter] has not made the Node.
//
// If a reply to a create of the node was lost, Remove also looks for further nodes of the same Enter. If the name is fixed
// and the reply to the delete is lost, the session looks who owns the node before it deletes again: another client can
// have made one meanwhile. It does not look before the first delete: if somebody else has deleted the node, and another client
// has made one of the same fixed name, that one is deleted.
func (n *Node) Remove(ctx context.Context) *Removal {
	misuse.Context(ctx, "session: Node.Remove")
	if n == nil || n.entry == nil {
		panic("session: Node not made by Session.Enter")
	}
	n.mu.Lock()
	if n.removal != nil {
		defer n.mu.Unlock()
		return n.removal
	}
	e := n.entry
	q, find := &e.s.removals, e.erase
	if !e.fixed {
		find = nil
	}
	r, start := q.begin(ctx, e.node, e.place, find)
	n.removal = r
	n.mu.Unlock() // start calls a hook, which may take its time, and others call Remove meanwhile
	start()
	if e.doubt && !e.fixed {
		e.place = nil // that of r
		_, start := q.begin(ctx, e.asked, nil, e.erase)
		start()
	}
	return r
}

// enter makes the node, and returns a listing that shows it. If it fails, undo has to follow, unless a create is pending.
func (e *entry) enter(ctx context.Context) (*Listing, error) {
	s := e.s
	long := 0 // how often in a row the connection was lost with the create as the longest request
	mode, pace := ephemeralSequential, rounds.Pace{Backoff: s.cfg.waits}
	if e.fixed {
		mode = ephemeral
	}
	return repeat(ctx, s, "create", e.asked, func(l *link) (*Listing, error) {
		for { // again if somebody has deleted the node, or its directory
			create, end := s.cfg.making(e.asked, e.data, s.cfg.acl, mode), make(chan wire.Reply, 1)
			create.ended = func(r wire.Reply) { // before any event or answer that follows
				if r.Err == nil && r.Code == codec.CodeOK {
					s.room.made(e.place, s.cfg.inward(r.Path))
				}
				end <- r
			}
			listing, err := s.list(ctx, l, e.dir, e.lists, create)
			if !create.answered {
				if e.pending = create.doubt; e.pending {
					go func() {
						r := <-end
						e.learn(l, &r, s.verdict(&r))
						e.undo(ctx)
					}()
				}
				return nil, err
			}
			e.learn(l, &create.reply, create.err)
			switch refusal := create.err; {
			case refusal == nil:
				if unnumbered := e.checkNumber(); unnumbered != nil {
					return listing, unnumbered
				}
				if err == nil && slices.Contains(listing.Names, path.Base(e.node)) {
					return listing, nil
				}
				listing.forget() // it is older than the node, or there is none
				if listing, err = e.listAgain(ctx); listing != nil || err != nil {
					return listing, err
				}
			case s.Err() != nil:
				return nil, s.Err()
			case outcomeOf(refusal) == inDoubt:
				if long++; !errors.Is(refusal, wire.ErrLongest) {
					long = 0
				}
				if long == refusedAfter { // that is an answer, in a way
					return nil, fmt.Errorf("%w: %d connections in a row were lost: %v", ErrTooLong, long, refusal) //nolint:errorlint // see above
				}
				if listing, err = e.seek(ctx); listing != nil || err != nil {
					return listing, err
				}
				return nil, refusal
			case errors.Is(refusal, zk.ErrNoNode): // a directory is missing; it can vanish at any moment while it is empty
				made, err := s.makeDirectory(ctx, s.cfg.outward(e.dir))
				if e.founded = e.founded || made; err != nil {
					return nil, err
				}
			case errors.Is(refusal, zk.ErrNodeExists) && !e.fixed: // past the end of the counter, servers give a number again
				return nil, fmt.Errorf("%w: it gave one again", ErrSequence)
			case errors.Is(refusal, zk.ErrNoAuth):
				return nil, s.missing("create", e.asked, refusal)
			default:
				return nil, refusal
			}
			if err := pace.Wait(ctx, s.life.Done()); err != nil {
				return nil, err
			}
		}
	})
}

// learn notes what the end of a create tells.
func (e *entry) learn(l *link, r *wire.Reply, err error) {
	switch {
	case err == nil:
		e.node, e.upTo = e.s.cfg.inward(r.Path), r.Zxid
	case outcomeOf(err) == inDoubt:
		if e.doubt, e.lost = true, nil; r.Err != nil {
			e.lost = l
		}
	}
}
