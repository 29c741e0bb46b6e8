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

// NewNode is the ephemeral node that [Session.Enter] makes.
type NewNode struct {
	Dir string
	// Name is the name of the node without its id and its number. The whole name is _c_<id>-<Name><number>, as in
	// _c_6ba7b810-9dad-11d1-80b4-00c04fd430c8-lock-0000000007 for the Name "lock-".
	Name string
	// Data is the data of the node. Nobody may change it before Enter has returned.
	Data []byte
	// Fixed says that the name is Name alone. One client at a time can have it.
	Fixed bool
	// Watch asks for a watch on the children of Dir: Children of [Listing].
	Watch bool
	// Directory asks for the data of Dir, and a watch on it: Data and Directory of [Listing].
	Directory bool
}

// Node is an ephemeral node that [Session.Enter] has made.
type Node struct {
	_ misuse.NoCopy

	Path string
	// Listing shows the node and all earlier ones that still stand. A caller that keeps the Node for long can set it
	// to nil.
	*Listing

	entry   *entry
	mu      sync.Mutex
	removal *Removal
}

// entry is an Enter in progress, and later what is needed to remove its node.
type entry struct {
	s     *Session
	dir   string
	asked string // of the create, without the number
	data  []byte
	fixed bool
	lists ListOptions
	place *place

	node    string // its path; "" if there is none, or not known
	doubt   bool   // a reply was lost: there may be a second node
	lost    *link  // the connection of the last such reply; nil if a server has answered
	founded bool   // this entry made the directory
	pending bool   // the caller has gone: a goroutine cleans up

	// At a fixed name, only a node of a transaction after "after" and up to upTo is ours.
	after, upTo int64
}

// refusedAfter is how many connections in a row must be lost with a create as the longest request in flight before that
// counts as too long.
const refusedAfter = 3

// idHead begins the names of numbered nodes, like Curator's protected ones.
const idHead = "_c_"

// Enter makes an ephemeral node in a directory, and returns it with a listing of the directory that shows it, in one
// round trip. Missing directories are made as containers, which the servers remove when they are empty again.
//
// Enter waits for a connection, and returns when it has the node and the listing, ctx has ended, the session has
// ended or the servers have refused. A lost reply to the create makes it look whether the node is there.
//
// If Enter fails, it leaves nothing behind, and needs no further call: what it has made, or may yet make, is removed
// in the background. An Enter of a fixed name first waits until other Enters and all removals of that path by this
// session have ended, since a delete that is repeated must not hit the new node. If the servers refuse such a removal,
// Enter fails as it does.
//
// Errors are those of go-zookeeper (zk.ErrNoAuth …), ctx's, or match one of these:
//
//   - zk.ErrNodeExists: there is a node with the fixed name. Watch it, and try again when it is gone.
//   - [ErrTooManyNodes], [ErrInvalid]: nothing was sent.
//   - [ErrTooLong]: the create is probably over jute.maxbuffer.
//   - [ErrSequence]: the numbers of the directory are used up.
//   - [ErrLost], [ErrClosed]: the session has ended, and the node goes with it.
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
	e.asked = strings.TrimSuffix(n.Dir, "/") + "/" + name // path.Join would mend paths that are not valid
	var bad error
	if n.Fixed && n.Name == "" || strings.Contains(n.Name, "/") {
		bad = misuse.Invalidf("%q is not the name of a node", n.Name)
	}
	if err := errors.Join(misuse.ValidatePath(n.Dir), bad, misuse.ValidatePath(e.asked), checkData(n.Data)); err != nil {
		return nil, err
	}
	if _, err := s.ready(ctx); err != nil {
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
	e.data, e.asked = nil, e.node[:len(e.asked)] // one text in memory for both
	return &Node{Path: e.node, Listing: l, entry: e}, nil
}

// Remove removes the node for certain: see [Session.Remove]. Further calls return the same [Removal]. If a reply to a
// create was lost, Remove also removes further nodes of the same Enter.
//
// If the name is fixed and the reply to the delete is lost, the session deletes again only if it still owns the node.
// The first delete is not checked, and also deletes another client's node that has replaced it.
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
	n.mu.Unlock() // start calls a hook, which may take its time
	start()
	if e.doubt && !e.fixed {
		e.place = nil // r has it
		_, start := q.begin(ctx, e.asked, nil, e.erase)
		start()
	}
	return r
}

// enter makes the node. If it fails, the caller calls undo, unless a create is pending.
func (e *entry) enter(ctx context.Context) (*Listing, error) {
	s := e.s
	long := 0 // connections lost in a row with this create as the longest request
	mode, pace := ephemeralSequential, rounds.Pace{Backoff: s.cfg.waits}
	if e.fixed {
		mode = ephemeral
	}
	return repeat(ctx, s, "create", e.asked, func(l *link) (*Listing, error) {
		for { // again if somebody deleted the node or its directory
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
				listing.forget()
				if listing, err = e.listAgain(ctx); listing != nil || err != nil {
					return listing, err
				}
			case s.Err() != nil:
				return nil, s.Err()
			case outcomeOf(refusal) == inDoubt:
				if long++; !errors.Is(refusal, wire.ErrLongest) {
					long = 0
				}
				if long == refusedAfter { // counts as an answer, so it must not match ErrConnectionClosed
					return nil, fmt.Errorf("%w: %d connections in a row were lost: %v", ErrTooLong, long, refusal) //nolint:errorlint // see above
				}
				if listing, err = e.seek(ctx); listing != nil || err != nil {
					return listing, err
				}
				return nil, refusal
			case errors.Is(refusal, zk.ErrNoNode): // it can vanish at any moment while it is empty
				made, err := s.makeDirectory(ctx, s.cfg.outward(e.dir))
				if e.founded = e.founded || made; err != nil {
					return nil, err
				}
			case errors.Is(refusal, zk.ErrNodeExists) && !e.fixed: // a counter that is used up repeats a number
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
