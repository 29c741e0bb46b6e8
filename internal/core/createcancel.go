package core

import (
	"bytes"
	"context"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/room"
)

// creates keeps two things apart, path by path: the creates of a session, and the searches for
// nodes of cancelled creates. While a create of a path is in flight, a node of this session at
// that path can be either the node of that create or the node that a search is for.
type creates struct {
	mu sync.Mutex
	m  map[string]*creating // by path as asked for; only those in use
}

type creating struct {
	inFlight int           // creates
	searches int           // running, or waiting until no create is in flight
	busy     bool          // a search is running
	users    int           // of this value
	changed  chan struct{} // closed and replaced at each change; nil if no goroutine waits
}

// begin waits until no search runs or waits at the path, or returns ctx's error. If a create did
// not wait for a waiting search, a stream of creates could keep the search waiting forever.
func (c *creates) begin(ctx context.Context, path string) error {
	return c.enter(ctx, path, func(one *creating) bool {
		if one.searches > 0 {
			return false
		}
		one.inFlight++
		return true
	})
}

// end is called once for each begin that succeeded.
func (c *creates) end(path string) { c.leave(path, func(one *creating) { one.inFlight-- }) }

// alone waits until no create of the path is in flight, and keeps others from beginning.
func (c *creates) alone(ctx context.Context, path string) error {
	_ = c.enter(ctx, path, func(one *creating) bool { one.searches++; return true })
	err := c.enter(ctx, path, func(one *creating) bool {
		if one.busy || one.inFlight > 0 {
			return false
		}
		one.busy = true
		return true
	})
	if err != nil {
		c.leave(path, func(one *creating) { one.searches-- })
	}
	return err
}

// shared is called once for each alone that succeeded.
func (c *creates) shared(path string) {
	c.leave(path, func(one *creating) { one.searches--; one.busy = false })
}

// enter waits until try returns true.
func (c *creates) enter(ctx context.Context, path string, try func(*creating) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[string]*creating)
	}
	one := c.m[path]
	if one == nil {
		one = new(creating)
		c.m[path] = one
	}
	one.users++
	defer c.dropLocked(path, one)
	for !try(one) {
		if one.changed == nil {
			one.changed = make(chan struct{})
		}
		changed := one.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *creates) leave(path string, change func(*creating)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.m[path]
	one.users++
	change(one)
	if one.changed != nil {
		close(one.changed)
		one.changed = nil
	}
	c.dropLocked(path, one)
}

func (c *creates) dropLocked(path string, one *creating) {
	if one.users--; one.users == 0 && one.inFlight == 0 && one.searches == 0 {
		delete(c.m, path)
	}
}

// abandonedCreate is a create whose caller has given up, and does not want the node any more.
type abandonedCreate struct {
	s    *Session
	path string // as asked for
	data []byte
	mode CreateMode

	node    string        // the path of its node; "" while not known
	czxid   int64         // of the node; 0 while not known
	upTo    int64         // czxid is at most this, if the create was answered
	booking *room.Booking // nil for a mode that needs no room
	noted   *room.Node    // of the node; nil while it is not known
}

// undo waits for the end of the create, and then deletes its node in the background. The doc
// comment of Create says what is promised.
func (g *abandonedCreate) undo(ctx context.Context, c *Creation) {
	<-c.Answered()
	made, err := c.Result()
	what := "undo the create of " + g.path
	switch {
	case err == nil:
		g.node, g.upTo, g.noted = made, c.upTo, c.noted
		g.persist(ctx, what, nil)
	case !Uncertain(err) || g.s.Err() != nil:
	case !g.mode.ephemeral():
		g.s.cfg.Log.Warn("a create was cancelled and its reply was lost; its node stays, if there is one", "path", g.path)
	case g.s.creates.alone(g.s.life, g.path) == nil:
		g.persist(ctx, what, func() { g.s.creates.shared(g.path) })
	}
}

func (g *abandonedCreate) persist(ctx context.Context, what string, then func()) {
	p := g.s.persistence(ctx, what, then, g.remove)
	p.stay = func() { g.booking.Stay(0) }
	p.start()
}

// remove deletes the node if it is there. It does not simply repeat a delete whose reply was
// lost, because another node can stand at the path by then. The transaction that made a node
// (czxid) tells the two apart.
func (g *abandonedCreate) remove(ctx context.Context) error {
	known := g.czxid
	stat, err := g.find(ctx)
	if err != nil {
		return err
	}
	if stat == nil || known != 0 && stat.Czxid != known {
		g.s.room.Gone(g.noted)
		g.booking.Resolve(0, "")
		return nil
	}
	g.czxid = stat.Czxid
	if g.mode.ephemeral() && g.noted == nil {
		g.booking.Resolve(0, g.node)
		g.noted = g.s.room.At(g.node)
	}
	return ignoreNoNode(g.s.deleteOnce(ctx, g.node, -1))
}

// find returns the stat of the node, or nil if there is none, and sets g.node.
func (g *abandonedCreate) find(ctx context.Context) (*zk.Stat, error) {
	dir, _ := path.Split(g.path)
	if err := g.s.newSync(ctx, path.Clean(dir)); err != nil {
		return nil, err
	}
	switch {
	case g.node != "":
		stat, err := g.s.Exists(ctx, g.node)
		if err == nil && stat != nil && g.isOthers(stat) {
			stat = nil
		}
		return stat, err
	case g.mode.sequential():
		return g.search(ctx, path.Clean(dir))
	}
	return g.match(ctx, g.path)
}

// isOthers reports whether the node at the path is not the one that the create made.
func (g *abandonedCreate) isOthers(stat *zk.Stat) bool {
	if g.mode.ephemeral() && (stat.EphemeralOwner != g.s.ID() || g.s.room.At(g.node) != g.noted) {
		return true
	}
	return g.upTo != 0 && stat.Czxid > g.upTo
}

// search looks for a sequential node whose number is not known. It takes one node at most. If
// several nodes match, the others belong to other creates.
func (g *abandonedCreate) search(ctx context.Context, dir string) (*zk.Stat, error) {
	names, _, err := g.s.Children(ctx, dir)
	if err != nil {
		return nil, ignoreNoNode(err)
	}
	for _, name := range names {
		node := path.Join(dir, name)
		if checkMade(g.path, g.mode, node) != nil {
			continue
		}
		if stat, err := g.match(ctx, node); err != nil || stat != nil {
			return stat, err
		}
	}
	return nil, nil
}

// match returns the stat of a node if the create may have made it: this session owns the node,
// the node has the data, and it is not the answer to another create.
func (g *abandonedCreate) match(ctx context.Context, node string) (*zk.Stat, error) {
	if g.s.room.At(node) != nil {
		return nil, nil
	}
	data, stat, err := g.s.Get(ctx, node)
	if err != nil || stat.EphemeralOwner != g.s.ID() || !bytes.Equal(data, g.data) {
		return nil, ignoreNoNode(err)
	}
	g.node = node
	return stat, nil
}

// deleteOnce sends a delete and does not repeat it, even if the reply is lost.
func (s *Session) deleteOnce(ctx context.Context, path string, version int32) error {
	info := hooks.RequestInfo{Op: "delete", Path: path}
	if err := s.ready(ctx); err != nil {
		return opError(info, err)
	}
	_, err := try(ctx, s, info, never, func(done func(struct{}, error)) { s.sendDelete(ctx, path, version, nil, done) })
	if err != nil {
		return opError(info, err)
	}
	return nil
}
