package session

import (
	"bytes"
	"context"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"
)

// creates keeps the creates of a session apart from the search for nodes of creates that were
// given up, path by path. While a create of the same path is under way, nobody can say whether
// a node of this session that stands there is its own.
type creates struct {
	mu sync.Mutex
	m  map[string]*creating // by path as asked for; only those in use
}

type creating struct {
	underWay int
	searches int           // that go on, or wait until no create is under way
	busy     bool          // one of them goes on
	users    int           // of this value
	changed  chan struct{} // closed and replaced at each change; nil if no goroutine waits
}

// begin waits until no search goes on or waits at the path, or returns ctx's error. A create
// that did not wait for a waiting search could keep it waiting, for ever where there are many.
func (c *creates) begin(ctx context.Context, path string) error {
	return c.enter(ctx, path, func(one *creating) bool {
		if one.searches > 0 {
			return false
		}
		one.underWay++
		return true
	})
}

// end is called once for each begin that succeeded.
func (c *creates) end(path string) { c.leave(path, func(one *creating) { one.underWay-- }) }

// alone waits until no create of the path is under way, and keeps others from beginning.
func (c *creates) alone(ctx context.Context, path string) error {
	_ = c.enter(ctx, path, func(one *creating) bool { one.searches++; return true })
	err := c.enter(ctx, path, func(one *creating) bool {
		if one.busy || one.underWay > 0 {
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
	if one.users--; one.users == 0 && one.underWay == 0 && one.searches == 0 {
		delete(c.m, path)
	}
}

// abandonedCreate is a create whose caller does not want its node any more.
type abandonedCreate struct {
	s    *Session
	path string // as asked for
	data []byte
	mode CreateMode

	node  string // that it has made; "" while not known
	czxid int64  // of that; 0 while not known
	upTo  int64  // it is no more than this, if the create was answered
	noted uint64 // see nodes; 0: it is not counted
}

// undo waits for the end of the create, and then removes, in the background, what it has made:
// see Create for what is promised.
func (g *abandonedCreate) undo(ctx context.Context, c *creation) {
	<-c.Done()
	made, err := c.Result()
	what := "undo the create of " + g.path
	switch {
	case err == nil:
		g.node, g.upTo, g.noted = made, c.upTo, c.noted
		g.s.persist(ctx, what, nil, g.remove)
	case !uncertain(err) || g.s.Err() != nil:
	case !g.mode.ephemeral():
		g.s.cfg.log.Warn("a create was given up and its reply lost: its node, if there is one, stays", "path", g.path)
	case g.s.creates.alone(g.s.life, g.path) == nil:
		g.s.persist(ctx, what, func() { g.s.creates.shared(g.path) }, g.remove)
	}
}

// remove deletes the node if it is there. A delete whose reply was lost is not simply repeated,
// since by then another node can stand at the path: the transaction that made them tells them
// apart.
func (g *abandonedCreate) remove(ctx context.Context) error {
	known := g.czxid
	stat, err := g.find(ctx)
	if err != nil {
		return err
	}
	if stat == nil || known != 0 && stat.Czxid != known {
		if g.noted != 0 {
			g.s.nodes.deleted(g.node, g.noted)
		}
		return nil
	}
	g.czxid = stat.Czxid
	return ignoreNoNode(g.s.deleteOnce(ctx, g.node, -1))
}

// find returns the stat of the node, or nil if there is none, and sets g.node.
func (g *abandonedCreate) find(ctx context.Context) (*zk.Stat, error) {
	dir, _ := path.Split(g.path)
	if err := g.s.Sync(ctx, path.Clean(dir)); err != nil {
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

// isOthers reports whether the node that stands where the create has made one is another.
func (g *abandonedCreate) isOthers(stat *zk.Stat) bool {
	if g.mode.ephemeral() && (stat.EphemeralOwner != g.s.ID() || g.s.nodes.noted(g.node) != g.noted) {
		return true
	}
	return g.upTo != 0 && stat.Czxid > g.upTo
}

// search looks for a sequential node whose number is not known. It takes one at most: of
// several that look the same, the others are those of other creates.
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

// match returns the stat of a node if the create may have made it: this session owns it, it has
// the data, and no other create has had it as an answer.
func (g *abandonedCreate) match(ctx context.Context, node string) (*zk.Stat, error) {
	if g.s.nodes.noted(node) != 0 {
		return nil, nil
	}
	data, stat, err := g.s.Get(ctx, node)
	if err != nil || stat.EphemeralOwner != g.s.ID() || !bytes.Equal(data, g.data) {
		return nil, ignoreNoNode(err)
	}
	g.node = node
	return stat, nil
}
