package simulation

import (
	"encoding/binary"
	"path"
	"strings"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// stale is a view of a directory from before a contender's node was made. ZooKeeper permits such a
// view to a client that has not seen the node, over a connection to another server than the one
// through which it made the node. It lasts until that server has caught up with the leader, for a
// sync or a write. A [zktest.Server] is one server, on which a client always sees its own writes.
// So the network imitates the view, and removes later nodes from listings.
type stale struct {
	dir string // "" for none
	seq int32
}

// asks ends the stale view if a request is a sync or a write, and gives the view to a listing. A listing that
// sets a watch ends the view, too: a server that is behind would tell of the nodes later, which the network
// cannot imitate.
func (l *link) asks(r *request) {
	e := l.e
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.op {
	case zktest.OpSync, zktest.OpCreate, zktest.OpDelete, zktest.OpMulti, zktest.OpCreateContainer, zktest.OpClose:
		e.stale = stale{}
	case zktest.OpGetChildren2:
		if r.watch {
			e.stale = stale{}
		}
		r.stale = e.stale
	}
}

// lost reports whether a frame is the reply that will get lost with its connection. It also makes a
// listing stale.
func (l *link) lost(p *packet) bool {
	xid, code, _ := parseReply(p.frame)
	l.mu.Lock()
	req, ok := l.asked[xid]
	l.mu.Unlock()
	if !ok || code != 0 || l.down.passed == 0 {
		return false
	}
	e := l.e
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case req.op == zktest.OpGetChildren2 && req.stale.dir == req.path:
		p.frame = req.stale.filter(p.frame)
	case req.op == zktest.OpCreate && e.losing && l == e.newest: // or else the client has moved on already
		n, ok := queue.ParseNode(readString(p.frame[20:]))
		if !ok {
			return false
		}
		e.losing = false
		e.stale = stale{path.Dir(req.path), n.Sequence}
		e.world.trace.add("fault", "the reply to %s of %s is lost, and its next server is behind", req.key, e.name)
		return true
	}
	return false
}

func readString(b []byte) string {
	return path.Base(strings.ToValidUTF8(string(b[4:4+binary.BigEndian.Uint32(b)]), ""))
}

// filter removes later contenders from a listing.
func (s stale) filter(frame []byte) []byte {
	const count = 20 // where the number of names is
	out := append([]byte(nil), frame[:count+4]...)
	rest, kept := frame[count+4:], uint32(0)
	for range binary.BigEndian.Uint32(frame[count:]) {
		size := 4 + binary.BigEndian.Uint32(rest)
		n, ok := queue.ParseNode(string(rest[4:size]))
		if !ok || n.Sequence < s.seq {
			out = append(out, rest[:size]...)
			kept++
		}
		rest = rest[size:]
	}
	out = append(out, rest...) // the stat
	binary.BigEndian.PutUint32(out[count:], kept)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}
