package size

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/leastleft"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// press keeps n writes of one connection in process, with numbers that the server does not count per connection.
func press(t *testing.T, addr string, n int, took *atomic.Int64) (stop func()) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	_, err = c.Write(codec.Hello{TimeoutMillis: 40_000}.Frame())
	must(t, err)
	_, err = codec.ReadFrame(c, 1000)
	must(t, err)
	room := make(chan struct{}, n)
	var sent sync.Map
	var all sync.WaitGroup
	all.Go(func() {
		for xid := int32(-1000); ; xid-- {
			room <- struct{}{}
			e := codec.NewFrame()
			e.Int32(xid)
			e.Int32(codec.OpMulti)
			for range 2000 {
				e.MultiHeader(codec.OpCheck, false, -1)
				e.String("/load")
				e.Int32(-1)
			}
			e.MultiHeader(codec.OpError, true, -1)
			sent.Store(xid, time.Now())
			if _, err := c.Write(e.Frame()); err != nil {
				return
			}
		}
	})
	all.Go(func() {
		for {
			f, err := codec.ReadFrame(c, 1<<20)
			if err != nil {
				for {
					select {
					case <-room:
					case <-time.After(time.Second):
						return
					}
				}
			}
			xid := int32(binary.BigEndian.Uint32(f[4:]))
			if at, ok := sent.LoadAndDelete(xid); ok {
				took.Store(int64(time.Since(at.(time.Time))))
			}
			<-room
		}
	})
	return func() { c.Close(); all.Wait() }
}

// Other clients hold a server over its limit of outstanding requests, where an answer takes a part of a second. A session
// that holds a lock, and that was quick before, survives a burst of calls as well as an idle session does.
func TestOverTheLimit(t *testing.T) {
	longtest.Only(t)
	e := server(t, zktest.Property("globalOutstandingLimit", "10"))
	c := rival(t, e.Addr(0))
	_, err := c.Create("/load", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	idle := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	busy := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	work := func(d time.Duration) (calls int64) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var all, bad atomic.Int64
		each(t, 200, func(i int) error {
			for ctx.Err() == nil && busy.s.Err() == nil {
				if _, err := busy.s.Exists(ctx, fmt.Sprint("/none/", i)); err == nil {
					all.Add(1)
				} else if bad.Add(1) < 4 {
					t.Log(err)
				}
			}
			return nil
		})
		return all.Load()
	}
	before := work(3 * time.Second)
	var took atomic.Int64
	for range 4 {
		defer press(t, e.Addr(0), 20, &took)()
	}
	zktest.Eventually(t, time.Minute, "slow answers", func() bool { return time.Duration(took.Load()) > 200*time.Millisecond })
	idleLeast, busyLeast := leastleft.Watch(idle.s), leastleft.Watch(busy.s)
	calls := work(20 * time.Second)
	t.Logf("%d calls before, %d since then; a request of the others takes %v; at least %v of the busy session was left, and "+
		"%v of the idle one", before, calls, time.Duration(took.Load()), busyLeast(), idleLeast())
	if err := busy.s.Err(); err != nil && idle.s.Err() == nil { // both are lost if the server is too slow for either
		t.Error(err)
	}
}

var pressFor = flag.Duration("press-for", time.Minute, "how long TestLargeWritesOfOthers lasts")

// Six other clients write 120 kB each, again and again, to a server whose limit of outstanding requests is 20. A session
// that holds a lock survives, and so does one that takes and gives back locks.
func TestLargeWritesOfOthers(t *testing.T) {
	longtest.Only(t)
	e := server(t, zktest.Property("globalOutstandingLimit", "20"))
	ctx, cancel := context.WithTimeout(t.Context(), *pressFor)
	defer cancel()
	idle := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	busy := newUser(t, e.ConnectString(), session.WithTimeout(10*time.Second))
	var writes, locks atomic.Int64
	data := make([]byte, 120<<10)
	var all sync.WaitGroup
	for i := range 6 {
		c, path := rival(t, e.Addr(0)), fmt.Sprint("/large-", i)
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		for range 4 { // 24 in process
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.Set(path, data, -1); err == nil {
						writes.Add(1)
					}
				}
			})
		}
	}
	idle.during("idle beside large writes", func(context.Context) {
		busy.during("busy beside large writes", func(inside context.Context) {
			for ctx.Err() == nil && busy.s.Err() == nil {
				must(t, take(inside, busy.Manager, "/taken"))
				locks.Add(1)
			}
		})
	})
	all.Wait()
	t.Logf("%v: %d writes of the others, %d locks", *pressFor, writes.Load(), locks.Load())
}
