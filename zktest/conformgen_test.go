package zktest

import (
	"fmt"
	"math/rand/v2"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A step is one action of a client.
type step struct {
	who  int
	what stepKind
	text string
	op   Op
	body func(base int64) []byte
	hand handshake
}

type stepKind int

const (
	stepRequest   stepKind = iota
	stepReconnect          // drop the connection, attach again
	stepReplace            // attach without dropping: the old one is closed
	stepClose              // close the session, make another
)

func (s step) String() string {
	switch s.what {
	case stepReconnect:
		return fmt.Sprintf("client%d reconnects %+v", s.who, s.hand)
	case stepReplace:
		return fmt.Sprintf("client%d connects again %+v", s.who, s.hand)
	case stepClose:
		return fmt.Sprintf("client%d closes its session", s.who)
	}
	return fmt.Sprintf("client%d %v %s", s.who, s.op, s.text)
}

// A generator makes random steps, many of which succeed.
type generator struct {
	*rand.Rand
	root  string
	names string // the fewer, the more often they meet
	odd   int    // one in so many paths is not of the sequence's own
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), root: fmt.Sprint("/s", seed)}
	g.names = "abq"[:1+g.IntN(3)]
	g.odd = 3 + g.IntN(60)
	return g
}

// pick returns one of several values at random. The first one is more likely than the others.
func pick[T any](g *generator, first T, others ...T) T {
	i := g.IntN(len(others) + 3)
	if i < len(others) {
		return others[i]
	}
	return first
}

func (g *generator) path() string {
	p := g.root
	if g.IntN(g.odd) == 0 {
		return g.oddPath()
	}
	for depth := min(1+g.IntN(4), 1+g.IntN(4)); depth > 0; depth-- {
		p += "/" + string(g.names[g.IntN(len(g.names))])
		if g.IntN(8) == 0 {
			p += fmt.Sprintf("%010d", g.IntN(3))
		}
	}
	return p
}

// oddPath returns a path that is invalid or special.
func (g *generator) oddPath() string {
	p := g.root
	switch g.IntN(13) {
	case 0:
		return ""
	case 1:
		return "relative"
	case 2:
		return p + "/"
	case 3:
		return p + "//a"
	case 4:
		return p + "/../a"
	case 5:
		return p + "/a\x00b"
	case 6:
		return p + "/bad\x01"
	case 7:
		return "/zookeeper/quota"
	case 8:
		return p
	case 9:
		return p + "/\xff"
	case 10:
		return p + "/\ue000"
	case 11:
		return p + "/é"
	}
	return "/"
}

func (g *generator) version() int32 { return pick(g, int32(-1), 0, 1, 2) }

func (g *generator) data() []byte {
	return pick(g, []byte("data"), nil, []byte{}, []byte("x"))
}

func (g *generator) acl() []znode.ACLEntry {
	ip := identity("ip", "127.0.0.1")
	user := identity("digest", "user:smGaoVKd/cQkjm7b88GyorAUz20=") // of user:pass0
	return pick(g, znode.OpenACL,
		znode.OpenACL, znode.OpenACL, znode.OpenACL, znode.OpenACL, znode.OpenACL,
		znode.ReadACL,
		[]znode.ACLEntry{entry(znode.PermAll, identity("auth", ""))},
		[]znode.ACLEntry{entry(znode.PermAll, user), entry(znode.PermRead, znode.Anyone)},
		[]znode.ACLEntry{entry(znode.PermAll, user)},
		[]znode.ACLEntry{entry(znode.PermAll, ip), entry(znode.PermAll, ip)},
		[]znode.ACLEntry{entry(znode.PermRead|znode.PermCreate, znode.Anyone), entry(znode.PermAll, identity("ip", "10.0.0.0/8"))},
		[]znode.ACLEntry{entry(znode.PermAll, identity("ip", "127.0.0.0/8"))},
		[]znode.ACLEntry{entry(znode.PermAdmin, znode.Anyone), entry(znode.PermRead, user)},
		nil,
		[]znode.ACLEntry{entry(znode.PermAll, identity("world", "nobody"))},
		[]znode.ACLEntry{entry(znode.PermAll, identity("digest", "no colon"))},
		[]znode.ACLEntry{entry(znode.PermAll, identity("nonsense", "x"))},
		[]znode.ACLEntry{entry(0, znode.Anyone)},
	)
}

func (g *generator) ttl() int64 {
	return pick(g, int64(3_600_000), 1, 0, -1, znode.MaxTTL, znode.MaxTTL+1)
}

// write returns the body of a write and a description.
func (g *generator) write(op Op) ([]byte, string) {
	e := new(znode.Encoder)
	path := g.path()
	e.String(path)
	text := fmt.Sprintf("%q", path)
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		data, acl := g.data(), g.acl()
		flags := pick(g, int32(0), 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, -1)
		switch {
		case op == OpCreateContainer:
			flags = pick(g, int32(4), 0)
		case op == OpCreateTTL:
			flags = pick(g, int32(5), 6, 0)
		}
		e.Buffer(data)
		e.ACL(acl)
		e.Int32(flags)
		text += fmt.Sprintf(" data %q acl %v flags %d", data, acl, flags)
		if op == OpCreateTTL {
			ttl := g.ttl()
			if flags == 0 {
				ttl = max(ttl, 0) // else the real server does not survive it
			}
			e.Int64(ttl)
			text += fmt.Sprint(" ttl ", ttl)
		}
	case OpSetData:
		data, version := g.data(), g.version()
		e.Buffer(data)
		e.Int32(version)
		text += fmt.Sprintf(" data %q version %d", data, version)
	case OpSetACL:
		acl, version := g.acl(), g.version()
		e.ACL(acl)
		e.Int32(version)
		text += fmt.Sprintf(" acl %v version %d", acl, version)
	case OpDelete, OpCheck:
		version := g.version()
		e.Int32(version)
		text += fmt.Sprintf(" version %d", version)
	}
	return e.B, text
}

func (g *generator) multi(op Op, kinds ...Op) ([]byte, string) {
	e := new(znode.Encoder)
	text := ""
	for n := g.IntN(5); n > 0; n-- {
		kind := kinds[g.IntN(len(kinds))]
		var body []byte
		var said string
		if op == OpMultiRead {
			body, said = g.read()
		} else {
			body, said = g.write(kind)
		}
		e.MultiHeader(int32(kind), false, -1)
		e.B = append(e.B, body...)
		text += fmt.Sprintf("[%v %s] ", kind, said)
	}
	e.MultiEnd()
	return e.B, text
}

func (g *generator) read() ([]byte, string) {
	e := new(znode.Encoder)
	path, watch := g.path(), g.IntN(2) == 0
	e.String(path)
	e.Bool(watch)
	return e.B, fmt.Sprintf("%q watch %v", path, watch)
}

func (g *generator) paths() (all []string) {
	for n := g.IntN(4); n > 0; n-- {
		all = append(all, g.path())
	}
	return all
}

// request returns the body of a request of that kind.
func (g *generator) request(op Op) (func(int64) []byte, string) {
	var b []byte
	var text string
	e := new(znode.Encoder)
	switch op {
	case OpMulti:
		b, text = g.multi(op, OpCreate, OpCreate, OpCreate2, OpSetData, OpDelete, OpCheck, OpCreateContainer, OpCreateTTL)
	case OpMultiRead:
		b, text = g.multi(op, OpGetData, OpGetChildren)
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		b, text = g.read()
	case OpGetACL, OpSync, OpGetEphemerals:
		path := g.path()
		e.String(path)
		b, text = e.B, path
	case OpGetAllChildrenNumber:
		e.String(g.root)
		b, text = e.B, g.root
	case OpCheckWatches, OpRemoveWatches:
		path, kind := g.path(), 1+g.Int32N(6)
		e.String(path)
		e.Int32(kind)
		b, text = e.B, fmt.Sprintf("%q kind %d", path, kind)
	case OpAddWatch:
		path, mode := g.path(), g.Int32N(3)
		e.String(path)
		e.Int32(mode)
		b, text = e.B, fmt.Sprintf("%q mode %d", path, mode)
	case OpAuth:
		scheme := pick(g, "digest", "digest", "digest", "digest", "ip", "nonsense")
		credential := fmt.Sprint("user:pass", g.IntN(2))
		e.Int32(0)
		e.String(scheme)
		e.Buffer([]byte(credential))
		b, text = e.B, scheme+" "+credential
	case OpSetWatches, OpSetWatches2:
		lists := [][]string{g.paths(), g.paths(), g.paths()}
		if op == OpSetWatches2 {
			lists = append(lists, g.paths(), g.paths())
		}
		seen := g.Int64N(50)
		return func(base int64) []byte {
			e := new(znode.Encoder)
			e.Int64(base + seen)
			for _, list := range lists {
				e.Strings(list)
			}
			return e.B
		}, fmt.Sprintf("%q seen +%d", lists, seen)
	case OpReconfig:
		for range 3 {
			e.Buffer(nil)
		}
		e.Int64(-1)
		b = e.B
	case OpPing, OpWhoAmI, 77:
	default:
		b, text = g.write(op)
	}
	if g.IntN(60) == 0 && len(b) > 0 && op != OpAuth && op != OpWhoAmI {
		b = b[:g.IntN(len(b))]
		text += fmt.Sprintf(" cut to %d bytes", len(b))
	}
	return func(int64) []byte { return b }, text
}

// common are the requests that most sequences have.
var common = []Op{
	OpCreate, OpCreate, OpCreate, OpCreate, OpCreate2, OpDelete, OpDelete, OpSetData, OpExists, OpExists, OpGetData, OpGetData,
	OpGetChildren, OpGetChildren2, OpMulti, OpMulti,
}

// rare does not contain checkWatches, because ZooKeeper 3.8.0 answers that a client watches a path if
// any client does. TestScripts has it for a single client.
var rare = []Op{
	OpCreateContainer, OpCreateTTL, OpGetACL, OpSetACL, OpSync, OpPing, OpMultiRead, OpAuth, OpSetWatches, OpSetWatches2,
	OpRemoveWatches, OpAddWatch, OpGetAllChildrenNumber, OpGetEphemerals, OpWhoAmI, OpReconfig, 77,
}

// sequence returns the steps of n clients.
func (g *generator) sequence(n int) []step {
	steps := []step{plain(g.root)}
	for range 80 {
		steps = append(steps, g.next(n))
	}
	return steps
}

// next returns a step of one of n clients.
func (g *generator) next(n int) step {
	s := step{who: g.IntN(n)}
	switch g.IntN(40) {
	case 0:
		s.what = stepReconnect
	case 1:
		s.what = stepReplace
	case 2:
		s.what = stepClose
	case 3:
		s.what = stepReconnect
		s.hand = handshake{badPassword: g.IntN(3) == 0, ahead: g.IntN(3) == 0, old: g.IntN(2) == 0, timeout: pick(g, int32(0), 1, 500_000)}
	default:
		s.op = common[g.IntN(len(common))]
		if g.IntN(3) == 0 {
			s.op = rare[g.IntN(len(rare))]
		}
		s.body, s.text = g.request(s.op)
	}
	return s
}

func identity(scheme, id string) znode.Identity { return znode.Identity{Scheme: scheme, ID: id} }

func entry(perms int32, id znode.Identity) znode.ACLEntry {
	return znode.ACLEntry{Perms: perms, ID: id}
}
