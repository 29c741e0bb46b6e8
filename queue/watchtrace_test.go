package queue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// reader and writer are the two kinds of a read-write lock. A reader is in the way of writers alone.
var reader, writer = rwKind(false), rwKind(true)

func rwKind(writes bool) *queue.Kind {
	kind := &queue.Kind{
		Name:     "read",
		Prefixes: []string{queue.PrefixRead, queue.PrefixWrite},
		Policy: func(queue.Node) queue.Policy {
			return queue.Policy{Weight: func(ahead queue.Node) int {
				if writes || ahead.Prefix == queue.PrefixWrite {
					return 1
				}
				return 0
			}}
		},
	}
	if writes {
		kind.Name = "write"
	}
	return kind
}

// The Watch hook names a node that stands: the one that the error of the wait would name. When that node is gone and the
// contender waits for others, the hook is called with another.
func TestWatchNamesWhoStands(t *testing.T) {
	read := func(who string) queue.Request {
		return queue.Request{Kind: reader, Prefix: queue.PrefixRead, Data: []byte(who)}
	}
	lock := func(who string) queue.Request { return queue.Request{Kind: mutex, Data: []byte(who)} }
	for _, c := range []struct {
		what          string
		first, second queue.Request
		mine          queue.Request
		held          bool // the second too, while the first holds
		want          []string
	}{
		{"a writer behind two readers", read("old"), read("young"), queue.Request{Kind: writer, Prefix: queue.PrefixWrite}, true, []string{
			"watch __READ__0000000000 by caller", "watched <nil> by caller",
			"watch __READ__0000000001 by caller", "watched <nil> by caller",
		}},
		{"a waiter of a mutex behind another", lock("holder"), lock("waiter"), ask, false, []string{
			"watch lock-0000000000 by caller", "watched <nil> by caller",
			"watch lock-0000000001 by caller", "watched <nil> by caller",
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			d := new(diary)
			q, others := client(t, dir, d.hooks(), session.WithTimeout(time.Minute)), client(t, dir)
			first, err := others.Acquire(patient(t), c.first)
			if err != nil {
				t.Fatal(err)
			}
			second := begin(t, others, c.second)
			if c.held {
				second.get(t)
			}
			testserver.WaitChildren(t, dir, 2)
			me := begin(t, q, c.mine)
			d.has(t, c.want[0])
			release(t, first)
			if !c.held {
				second.get(t)
			}
			d.has(t, c.want[2])
			me.waits(t, "the second holds")
			release(t, second.lease)
			release(t, me.get(t))
			got := slices.DeleteFunc(d.read(), func(l string) bool { return !strings.HasPrefix(l, "watch") })
			if !slices.Equal(got, c.want) {
				t.Errorf("the hook was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
