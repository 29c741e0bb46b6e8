package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// Looks at a lock tell what has happened in between.
func TestHistory(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	one := func(node string, holds bool) locks.Contender {
		return locks.Contender{Node: node, Path: "/l/" + node, Holds: holds, Known: true, ID: node[:4], Since: at, Token: 1}
	}
	a, b, c := uuidA+"lock-0000000000", uuidB+"lock-0000000001", uuidC+"lock-0000000002"
	lock := func(changes int64, all ...locks.Contender) *locks.Lock {
		return &locks.Lock{Path: "/l", Kind: locks.Mutex, Contenders: all, Stat: &zk.Stat{}, Changes: changes, Birth: 7}
	}
	reused := func(token int64) *locks.Lock {
		u := one("lock-0000000000", true)
		u.Token = token
		return lock(token, u)
	}
	revoked := one(a, true)
	revoked.Revoked = true
	for what, steps := range map[string][]struct {
		l    *locks.Lock
		want string
	}{
		"hand-over": {
			{lock(2, one(a, true), one(b, false)), "holds _c_a, waits _c_b"},
			{lock(3, one(b, true)), "ended _c_a, granted _c_b"},
			{lock(3, one(b, true)), ""},
			{lock(4, one(b, true), one(c, false)), "came _c_c"},
			{lock(5, one(b, true)), "left _c_c"},
			{lock(6), "ended _c_b, free"},
		},
		"at once":  {{lock(0), "free"}, {lock(1, one(a, true)), "granted _c_a"}},
		"missed":   {{lock(0), "free"}, {lock(4), "missed"}, {lock(9, one(a, true)), "missed, granted _c_a"}},
		"none":     {{&locks.Lock{Path: "/l"}, "none"}, {lock(1, one(a, true)), "granted _c_a"}, {&locks.Lock{Path: "/l"}, "ended _c_a, none"}},
		"one name": {{reused(1), "holds lock"}, {reused(3), "ended lock, granted lock"}},
		"asked":    {{lock(1, one(a, true)), "holds _c_a"}, {lock(1, revoked), "asked _c_a"}, {lock(1, revoked), ""}},
	} {
		var h history
		for i, s := range steps {
			var got []string
			for _, e := range h.look(s.l, at) {
				text := e.Event
				if e.Contender != nil {
					text += " " + e.ID
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(s.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s, look %d:\n%s", what, i, diff)
			}
		}
	}
}
