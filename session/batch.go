package session

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// Creates and deletes of different callers that come while many are in flight are sent together, as one
// multi. The ensemble then agrees once for all of them (group commit). This file decides which of them
// go together, and when. batchsend.go sends them.
//
//   - Only requests that hardly ever fail take part, and only at their first try: creates of ephemeral
//     sequential nodes, and deletes of nodes that this session made. A multi carries out all of its
//     operations or none. If one fails, all are sent again, each alone, and further requests go alone
//     for a while.
//   - A multi has at most one create in a directory. All nodes of one transaction have the same
//     transaction id (czxid), which is the fencing token of a lock. Two holders of one lock must not
//     have the same token.
//   - While few requests are in flight, each goes alone and at once. So a lock takes no longer than
//     without batches.

// A batch has at most this many operations, and bytes with its frame, which any server accepts.
const (
	batchOps   = 16
	batchBytes = 16_000
)

// batching says when requests are sent together.
type batching struct {
	from atomic.Int32 // from this many in flight on, requests do not go at once
	few  atomic.Int32 // so many batches are under way before requests wait to fill one
}

func (b *batching) init() { b.set(16, 4) }

func (b *batching) set(from, few int) {
	b.from.Store(int32(from))
	b.few.Store(int32(few))
}

// part is a create or a delete that may be sent with others.
type part struct {
	op     any                        // a *zk.CreateRequest or *zk.DeleteRequest; its path has the chroot
	dir    string                     // of a create; "" for a delete
	size   int                        // in a frame
	number *atomic.Int64              // the hooks of the caller read the number of the batch here; may be nil
	sent   chan struct{}              // closed when the request is sent; nil if it never waited
	done   func(made string, e error) // called once, with the answer to this part
}

// The sizes of what a multi adds to the data, paths and ACLs of its operations.
const (
	batchFrame = 4 + 8 + 9 // length, number and kind of the request; end of the multi
	partSize   = 9 + 4     // head of an operation; length of its path
	createSize = 3 * 4     // length of the data and the ACL; flags
)

func newCreatePart(dir string, op *zk.CreateRequest) *part {
	size := partSize + len(op.Path) + createSize + len(op.Data)
	for _, acl := range op.Acl {
		size += 3*4 + len(acl.Scheme) + len(acl.ID)
	}
	return &part{op: op, dir: dir, size: size}
}

func newDeletePart(op *zk.DeleteRequest) *part {
	return &part{op: op, size: partSize + len(op.Path) + 4}
}

// group has the requests of a session that take part in batches.
type group struct {
	when *batching

	mu      sync.Mutex
	waiting []*part // in order of arrival
	flying  int     // requests in flight, in a batch or alone
	senders int     // goroutines that send what waits
	caution caution
	batches int64 // how many there were
}

// aloneAtOnce reports whether a request goes alone and at once. The caller then sends it, and calls
// landed. Otherwise it makes a part, and calls add.
func (g *group) aloneAtOnce() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 || g.flying >= int(g.when.from.Load()) && g.caution.left == 0 {
		return false
	}
	g.caution.spend(1)
	g.flying++
	return true
}

// landed is called when n requests have been answered, or lost.
func (g *group) landed(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying -= n
}

// add adds a part to those that wait. It reports whether the caller has to start another sender.
func (g *group) add(p *part) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, p)
	return g.callSenderLocked()
}

// withdraw takes a part back. It reports false if the part is being sent already.
func (g *group) withdraw(p *part) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, p)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// take returns the next batch, its number, and whether the caller has to start another sender. If it returns
// no batch, the caller is no sender any more.
func (g *group) take() (batch []*part, number int64, another bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, complete := g.nextLocked()
	if n == 0 || g.senders > int(g.when.few.Load()) && !complete {
		g.senders--
		return nil, 0, false
	}
	batch = slices.Clone(g.waiting[:n])
	clear(g.waiting[:n])
	if g.waiting = g.waiting[n:]; len(g.waiting) == 0 {
		g.waiting = nil
	}
	g.caution.spend(n)
	g.flying += n
	g.batches++
	return batch, g.batches, g.callSenderLocked()
}

// callSenderLocked reports whether to start another sender, and counts it.
func (g *group) callSenderLocked() bool {
	n, complete := g.nextLocked()
	if n == 0 || g.senders >= int(g.when.few.Load()) && !complete {
		return false
	}
	g.senders++
	return true
}

// nextLocked returns how many of those that wait make the next batch, and whether nothing can join it
// any more.
func (g *group) nextLocked() (n int, complete bool) {
	if len(g.waiting) > 0 && g.caution.left > 0 {
		return 1, true
	}
	return nextBatch(g.waiting)
}

// nextBatch returns how many of the first of all make one batch, and whether no further request can
// join that batch.
func nextBatch(all []*part) (n int, complete bool) {
	size := batchFrame
	for i, p := range all {
		size += p.size
		if i == batchOps || i > 0 && size > batchBytes || p.dir != "" && createsIn(all[:i], p.dir) {
			return i, true
		}
	}
	return len(all), len(all) == batchOps
}

// createsIn reports whether one of the parts creates a node in the directory.
func createsIn(parts []*part, dir string) bool {
	return slices.ContainsFunc(parts, func(p *part) bool { return p.dir == dir })
}

// caution makes requests go alone after a batch has failed: the next 16 at first, and twice as many
// after each further failure.
type caution struct {
	left int // how many of the next requests go alone
	last int // how many it were after the latest failure
}

const (
	cautionFirst = 16
	cautionMost  = 1024
)

func (c *caution) failed() {
	c.last = min(max(2*c.last, cautionFirst), cautionMost)
	c.left = c.last
}

func (c *caution) succeeded() { c.last /= 2 }

// spend is called when n requests are sent.
func (c *caution) spend(n int) { c.left = max(0, c.left-n) }

// failed is called when a batch has failed.
func (g *group) failed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caution.failed()
}

// succeeded is called when a batch has succeeded.
func (g *group) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caution.succeeded()
}
