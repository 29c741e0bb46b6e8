package zktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// say returns a step that sends a request.
func say(who int, op Op, write func(*znode.Encoder)) step {
	return step{who: who, op: op, body: func(int64) []byte {
		e := new(znode.Encoder)
		if write != nil {
			write(e)
		}
		return e.B
	}}
}

func mkdir(who int, op Op, path string, flags int32, acl []znode.ACLEntry) step {
	return say(who, op, func(e *znode.Encoder) {
		e.String(path)
		e.Buffer([]byte("data"))
		e.ACL(acl)
		e.Int32(flags)
	})
}

func remove(who int, path string, version int32) step {
	return say(who, OpDelete, func(e *znode.Encoder) {
		e.String(path)
		e.Int32(version)
	})
}

func set(who int, path string, data []byte, version int32) step {
	return say(who, OpSetData, func(e *znode.Encoder) {
		e.String(path)
		e.Buffer(data)
		e.Int32(version)
	})
}

func look(who int, op Op, path string, watch bool) step {
	return say(who, op, func(e *znode.Encoder) {
		e.String(path)
		if op != OpGetACL {
			e.Bool(watch)
		}
	})
}

func login(who int, credential string) step {
	return say(who, OpAuth, func(e *znode.Encoder) {
		e.Int32(0)
		e.String("digest")
		e.Buffer([]byte(credential))
	})
}

// A part is one operation of a multi.
type part struct {
	op    Op
	write func(*znode.Encoder)
}

func several(who int, op Op, parts ...part) step {
	return say(who, op, func(e *znode.Encoder) {
		for _, p := range parts {
			e.MultiHeader(int32(p.op), false, -1)
			p.write(e)
		}
		e.MultiEnd()
	})
}

func creating(path string, flags int32) part { return creatingBy(OpCreate, path, flags) }

func creatingBy(op Op, path string, flags int32) part {
	return part{op, func(e *znode.Encoder) {
		e.String(path)
		e.Buffer(nil)
		e.ACL(znode.OpenACL)
		e.Int32(flags)
	}}
}

func deleting(path string, version int32) part {
	return part{OpDelete, func(e *znode.Encoder) {
		e.String(path)
		e.Int32(version)
	}}
}

func watchWith(who int, op Op, path string, kind int32) step {
	return say(who, op, func(e *znode.Encoder) {
		e.String(path)
		e.Int32(kind)
	})
}

func bulky(path string, size int) step {
	// 4 bytes each: path's length, data's length, list's length, flags; and the header, and one entry of an ACL.
	overhead := 8 + 4 + len(path) + 4 + 4 + 4 + (4 + 4 + len("world") + 4 + len("anyone"))
	return say(0, OpCreate, func(e *znode.Encoder) {
		e.String(path)
		e.Buffer(make([]byte, size-overhead))
		e.ACL(znode.OpenACL)
		e.Int32(0)
	})
}

// scripts returns sequences that random requests would seldom contain.
func scripts() map[string][]step {
	auth := []znode.ACLEntry{entry(znode.PermAll, identity("auth", ""))}
	s := make(map[string][]step)
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		s["new server"] = append(s["new server"],
			look(0, OpExists, path, false), look(0, OpGetData, path, false), look(0, OpGetChildren2, path, false),
			look(0, OpGetACL, path, false), remove(0, path, -1), mkdir(0, OpCreate, path, 0, znode.OpenACL))
	}
	s["sequences"] = []step{
		mkdir(0, OpCreate, "/q", 0, znode.OpenACL),
		mkdir(0, OpCreate, "/q/", 2, znode.OpenACL), mkdir(0, OpCreate2, "/q/n-", 3, znode.OpenACL), mkdir(0, OpCreate, "/q/x", 1, znode.OpenACL),
		mkdir(0, OpCreate, "/q/x/y", 0, znode.OpenACL), mkdir(0, OpCreate, "/q/x/y", 2, znode.OpenACL),
		remove(0, "/q/0000000000", -1), mkdir(0, OpCreate, "/q/n-", 2, znode.OpenACL), mkdir(0, OpCreate, "/q/n-", 2, znode.OpenACL),
		several(0, OpMulti, creating("/q/m-", 2), creating("/q/m-", 3), deleting("/q/m-0000000005", 0), creating("/q/m-", 2)),
		several(0, OpMulti, creating("/q/m-", 2), deleting("/q/none", 0), creating("/q/m-", 2)),
		mkdir(0, OpCreate, "/q/n-", 2, znode.OpenACL), look(0, OpGetChildren2, "/q", false),
	}
	for _, op := range []Op{OpCreate, OpCreate2, OpCreateContainer} { // the kind of node by name and by flags
		for _, flags := range []int32{0, 1, 2, 4} {
			dir := fmt.Sprint("/k", op, flags)
			s["kinds in a multi"] = append(s["kinds in a multi"],
				several(0, OpMulti, creatingBy(op, dir, flags)), look(0, OpExists, dir, false), mkdir(0, OpCreate, dir+"/c", 0, znode.OpenACL))
		}
	}
	s["permissions"] = []step{
		mkdir(0, OpCreate, "/p", 0, auth), login(0, "user:pass"), mkdir(0, OpCreate, "/p", 0, auth),
		mkdir(0, OpCreate, "/p/c", 0, znode.OpenACL), look(0, OpGetACL, "/p", false), say(0, OpWhoAmI, nil),
		look(1, OpGetData, "/p", true), look(1, OpGetChildren, "/p", true), look(1, OpExists, "/p", true), look(1, OpGetACL, "/p", false),
		set(1, "/p", nil, -1), mkdir(1, OpCreate, "/p/d", 0, znode.OpenACL), remove(1, "/p/c", -1), remove(1, "/p/none", -1),
		set(0, "/p", nil, -1), look(1, OpGetData, "/p/c", true), login(1, "user:wrong"), look(1, OpGetData, "/p", true),
		login(1, "user:pass"), look(1, OpGetData, "/p", true), set(0, "/p", []byte{}, 1), remove(1, "/p/c", -1), remove(1, "/p", 2),
	}
	user := identity("digest", "user:smGaoVKd/cQkjm7b88GyorAUz20=")
	s["what others see of an ACL"] = []step{
		mkdir(0, OpCreate, "/acl", 0, []znode.ACLEntry{entry(znode.PermAll, user), entry(znode.PermRead, znode.Anyone), entry(znode.PermWrite, identity("ip", "10.0.0.0/8"))}),
		look(0, OpGetACL, "/acl", false), set(0, "/acl", nil, -1), login(0, "user:pass0"), look(0, OpGetACL, "/acl", false),
		set(0, "/acl", nil, -1), login(0, "user:pass0"), say(0, OpWhoAmI, nil),
		say(0, OpAuth, func(e *znode.Encoder) { e.Int32(0); e.String("nonsense"); e.Buffer([]byte("x")) }),
		say(0, OpWhoAmI, nil), say(0, OpAuth, func(e *znode.Encoder) { e.Int32(0); e.String("digest"); e.Int32(99) }),
	}
	s["one client's watches"] = []step{
		mkdir(0, OpCreate, "/w", 0, znode.OpenACL), watchWith(0, OpCheckWatches, "/w", 2), look(0, OpGetData, "/w", true),
		watchWith(0, OpCheckWatches, "/w", 2), watchWith(0, OpCheckWatches, "/w", 1), watchWith(0, OpCheckWatches, "/w", 3),
		watchWith(0, OpRemoveWatches, "/w", 1), watchWith(0, OpRemoveWatches, "/w", 2), watchWith(0, OpRemoveWatches, "/w", 2),
		look(0, OpGetData, "/w", true), look(0, OpGetChildren, "/w", true), remove(0, "/w", -1),
		look(0, OpExists, "/w", true), mkdir(0, OpCreate, "/w", 0, znode.OpenACL), mkdir(0, OpCreate, "/w/x", 0, znode.OpenACL),
	}
	s["lasting watches"] = []step{
		mkdir(0, OpCreate, "/l", 0, znode.OpenACL), watchWith(1, OpAddWatch, "/l", 0), watchWith(2, OpAddWatch, "/l", 1),
		set(0, "/l", nil, -1), set(0, "/l", nil, -1), mkdir(0, OpCreate, "/l/x", 0, znode.OpenACL), mkdir(0, OpCreate, "/l/x/y", 0, znode.OpenACL),
		set(0, "/l/x/y", nil, -1), remove(0, "/l/x/y", -1), remove(0, "/l/x", -1), remove(0, "/l", -1), mkdir(0, OpCreate, "/l", 0, znode.OpenACL),
		watchWith(2, OpRemoveWatches, "/l", 3), set(0, "/l", nil, -1), watchWith(1, OpAddWatch, "/l", 7),
	}
	s["a session's end"] = []step{
		mkdir(0, OpCreate, "/e", 0, znode.OpenACL), mkdir(0, OpCreate, "/e/1", 1, znode.OpenACL), mkdir(0, OpCreate, "/e/n-", 3, znode.OpenACL),
		look(1, OpGetChildren2, "/e", true), look(1, OpGetData, "/e/1", true), look(2, OpExists, "/e/1", true), look(0, OpExists, "/e/1", true),
		say(0, OpGetEphemerals, func(e *znode.Encoder) { e.String("/e") }), {who: 0, what: stepClose},
		look(1, OpGetChildren2, "/e", true), {who: 1, what: stepReplace}, {who: 2, what: stepReconnect},
	}
	s["handshakes"] = []step{
		{what: stepReconnect, hand: handshake{timeout: 1}}, {what: stepReconnect, hand: handshake{timeout: -5}},
		{what: stepReconnect, hand: handshake{timeout: 1_000_000}}, {what: stepReplace, hand: handshake{old: true}},
		{what: stepReconnect, hand: handshake{ahead: true}}, {what: stepReplace, hand: handshake{badPassword: true}},
		say(0, 77, nil), say(0, OpMulti, nil), several(0, OpMulti), several(0, OpMultiRead),
	}
	s["misshapen"] = []step{
		several(0, OpMulti, creating("/m", 0), part{OpGetData, func(e *znode.Encoder) { e.String("/"); e.Bool(false) }}),
		several(0, OpMulti, creating("/m", 0), part{77, func(*znode.Encoder) {}}),
		mkdir(0, OpCreate, "/m\U0001F512", 0, znode.OpenACL), mkdir(0, OpCreate, "/m\xff", 0, znode.OpenACL),
		say(0, OpCreate, func(e *znode.Encoder) { e.Int32(-1) }), say(0, OpGetData, func(e *znode.Encoder) { e.Int32(1 << 30) }),
		say(0, OpSetWatches, func(e *znode.Encoder) { e.Int64(0); e.Int32(1 << 30) }), say(0, OpSync, nil), say(0, OpDelete, nil),
		say(0, OpReconfig, nil), say(0, OpGetAllChildrenNumber, func(e *znode.Encoder) { e.String("/none") }),
		say(0, OpGetEphemerals, func(e *znode.Encoder) { e.String("/") }), say(0, OpGetEphemerals, func(e *znode.Encoder) { e.String(" ") }),
		say(0, OpGetACL, func(e *znode.Encoder) { e.Int32(-7) }), watchWith(0, OpCheckWatches, "/", 9),
	}
	s["sizes"] = []step{bulky("/big", 1<<20-2), bulky("/bigger", 1<<20-1), bulky("/too-big", 1<<20), look(0, OpExists, "/big", false)}
	return s
}

func TestScripts(t *testing.T) {
	servers := newPair(t)
	all := scripts()
	compareScript := func(name string) {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			steps := all[name]
			for i := range steps {
				steps[i].text = fmt.Sprintf("%.60q", steps[i].body0())
			}
			compare(t, servers, 3, steps)
		})
		delete(all, name)
	}
	compareScript("new server") // before there are others' nodes
	for name := range all {
		compareScript(name)
	}
}

func (s step) body0() []byte {
	if s.body == nil {
		return nil
	}
	return s.body(0)
}
