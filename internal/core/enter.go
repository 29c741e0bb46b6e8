package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/room"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// NewNode is that of package session.
type NewNode struct {
	Dir, Name string
	Data      []byte
	Fixed     bool
	Watch     bool
	Directory bool
}

// Node is that of package session, from its create until it is removed.
type Node struct {
	entry
	once    sync.Once
	removal *Removal
}

// entry is an Enter in progress, and then what the session has to know to remove its node.
type entry struct {
	s *Session
	NewNode
	asked string     // the path of the create, without the number
	mode  CreateMode // of the create

	flight  *Creation // a create of which it is not known what became of it; nil if there is none
	doubt   bool      // a reply was lost at some time: there may be a second node
	founded bool      // the entry has made the directory
	watch   *Watch    // that the last listing has set
	node    string    // the path of the node; "" while there is none, or it is not known

	// These tell a node with a fixed name from others at its path: an earlier transaction than after, or a later one than
	// upTo, has made those.
	after, upTo int64
	noted       *room.Node // what is counted of it; nil while it is not known
	alone       bool       // the entry keeps other creates and entries from its path
}

// idHead begins the names of numbered nodes, as Curator's protected ones have it.
const idHead = "_c_"

// Path returns the path of the node.
func (n *Node) Path() string { return n.node }

// Enter is that of session.Session.
func (s *Session) Enter(ctx context.Context, n NewNode) (_ *Node, _ Listing, err error) {
	e := &entry{s: s, NewNode: n, mode: EphemeralSequential, upTo: math.MaxInt64}
	name := n.Name
	if n.Fixed {
		e.mode = Ephemeral
	} else {
		name = idHead + uuid.NewString() + "-" + n.Name
	}
	e.asked = strings.TrimSuffix(n.Dir, "/") + "/" + name // path.Join would make a valid path of some that are not
	if err := errors.Join(misuse.ValidatePath(n.Dir), e.checkName(), misuse.ValidatePath(e.asked), checkData(n.Data)); err != nil {
		return nil, Listing{}, err
	}
	v, err := s.Reserve(ctx, Want{Nodes: 1, Bytes: s.NodeBytes(e.asked, !n.Fixed)})
	if err != nil {
		return nil, Listing{}, e.failed(err)
	}
	defer v.End()
	defer func() {
		if err != nil {
			e.abandon(ctx)
		}
	}()
	if n.Fixed {
		if err := e.takeName(ctx); err != nil {
			return nil, Listing{}, err
		}
	}
	l, err := e.enter(ctx, v)
	if err != nil {
		return nil, Listing{}, err
	}
	e.share()
	e.watch, e.Data = nil, nil
	return &Node{entry: *e}, *l, nil
}

func (e *entry) checkName() error {
	if e.Fixed && e.Name == "" || strings.Contains(e.Name, "/") {
		return misuse.Invalidf("%q is not the name of a node", e.Name)
	}
	return nil
}

// failed returns the error of an entry for a reason that says nothing of the request.
func (e *entry) failed(why error) error {
	return opError(hooks.RequestInfo{Op: "create", Path: e.asked}, why)
}

// enter makes the node, and returns a listing that shows it.
func (e *entry) enter(ctx context.Context, v *Reservation) (*Listing, error) {
	pace := rounds.Pace{New: e.s.cfg.Retry}
	for tries := 1; ; tries++ {
		l, err := e.send(ctx, v, tries)
		if err != nil || l != nil {
			return l, err
		}
		if err := pace.Wait(ctx, e.s.Done()); err != nil {
			return nil, e.failed(err)
		}
	}
}

// send sends the create and the listing together, and between them a read of the directory if one was asked for. It does
// not matter which of them the server handles first, since a listing counts only if it shows the node. send returns
// nothing if there is no node, and another create may make one.
func (e *entry) send(ctx context.Context, v *Reservation, tries int) (*Listing, error) {
	c, err := e.s.startCreate(ctx, v, e.asked, e.Data, e.mode, e.Fixed)
	if err != nil {
		return nil, err // nothing was sent
	}
	if tries == 1 {
		e.after = c.After()
	}
	e.flight = c
	info := hooks.RequestInfo{Op: "getChildren", Path: e.Dir}
	l, _, unlisted := try(ctx, e.s, info, always, e.listing(ctx, nil))
	if err := e.answer(ctx, c); err != nil {
		return nil, e.failed(err)
	}
	made, err := c.Result()
	switch {
	case err == nil:
		e.isMade(made, c.upTo, c.noted)
		return e.shown(ctx, l, unlisted)
	case errors.Is(err, zk.ErrNoNode): // a directory is missing; it can vanish at any moment while it is empty
		e.flight = nil
		made, err := e.s.MakeDirectory(ctx, e.Dir) // if the session has ended since the answer, the error says that
		e.founded = e.founded || made
		return nil, err
	case e.s.Err() != nil: // the node goes with the session, which can have ended since the answer
		return nil, e.failed(e.s.Err())
	case errors.Is(err, zk.ErrNodeExists) && !e.Fixed: // past the end of the counter, servers give a number again
		e.flight = nil
		return nil, e.failed(fmt.Errorf("%w: it gave one again", ErrSequence))
	case Uncertain(err):
		e.doubt = true
		found, unknown := e.seek(ctx, c)
		if unknown == nil && found == nil {
			e.s.traceRetry(ctx, hooks.RequestInfo{Op: "create", Path: e.asked}, tries, err)
			if errors.Is(err, ErrTooLong) {
				return nil, err // the next create would break the connection again
			}
		}
		return found, unknown
	}
	e.flight = nil
	return nil, err
}

// answer waits until a create has ended, and its hook has been told. An answer that is there counts, whatever else has
// happened.
func (e *entry) answer(ctx context.Context, c *Creation) error {
	select {
	case <-c.Done():
		return nil
	case <-ctx.Done():
	case <-e.s.Done():
	}
	select {
	case <-c.Done():
		return nil
	default:
		if err := e.s.Err(); err != nil {
			return err
		}
		return ctx.Err()
	}
}

// isMade takes note of the node.
func (e *entry) isMade(node string, upTo int64, noted *room.Node) {
	e.node, e.upTo, e.noted, e.flight = node, upTo, noted, nil
}

// shown returns a listing that shows the node. It lists again if the first listing does not: it can be older
// than the node. It returns nothing if the node is gone.
func (e *entry) shown(ctx context.Context, l Listing, unlisted error) (*Listing, error) {
	if err := e.checkNumber(); err != nil {
		return nil, err
	}
	name := path.Base(e.node)
	if unlisted == nil && slices.Contains(l.Names, name) {
		return &l, nil
	}
	l, err := do(ctx, e.s, hooks.RequestInfo{Op: "getChildren", Path: e.Dir}, always, e.listing(ctx, nil))
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && !slices.Contains(l.Names, name): // somebody has deleted it
		if e.Fixed {
			e.s.room.Gone(e.noted)
		} else {
			e.s.Remove(ctx, e.node) // if a server does not list a node that stands, nobody else would delete it
		}
		e.node, e.noted = "", nil
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &l, nil
}

// checkNumber fails at the end of the directory's counter. The next numbers would be the same again, or below all others.
func (e *entry) checkNumber() error {
	if n := e.number(path.Base(e.node)); !e.Fixed && (n < 0 || n == math.MaxInt32) {
		return e.failed(fmt.Errorf("%w: it gave %d", ErrSequence, n))
	}
	return nil
}

// number returns the number of a node of ours.
func (e *entry) number(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, path.Base(e.asked)))
	return n
}

// isOurs reports whether a child of the directory has the name of the entry and a number.
func (e *entry) isOurs(name string) bool {
	return checkMade(e.asked, e.mode, path.Join(e.Dir, name)) == nil
}

// listing starts a list of the directory, with the read of its data and the watches that were asked for. The watch of an
// earlier listing of the entry is forgotten. agreed is that of listed.
func (e *entry) listing(ctx context.Context, agreed func() bool) starter[Listing] {
	return func(done func(Listing, error)) {
		e.forgetWatch()
		if e.Watch {
			e.watch = e.s.watches.Children.Alone(e.s.outward(e.Dir))
		}
		e.s.listed(ctx, e.Dir, ListOptions{Data: e.Directory, Watch: e.Directory}, e.watch, agreed)(done)
	}
}

func (e *entry) forgetWatch() {
	if e.watch != nil {
		e.s.watches.Children.Drop(e.s.outward(e.Dir), e.watch)
		e.watch = nil
	}
}
