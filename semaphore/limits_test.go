package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Bad arguments are refused before any I/O: the manager of this test cannot do any.
func TestInvalid(t *testing.T) {
	m := new(session.Manager)
	for what, c := range map[string]struct {
		limit int
		opt   semaphore.Option
		ok    bool
	}{
		"no leases":                {0, curators, false},
		"fewer than none":          {-1, curators, false},
		"more than a name can say": {math.MaxInt, curators, math.MaxInt == math.MaxInt32},
		"a nil option":             {1, nil, false},
		"an empty name":            {1, semaphore.WithName(""), false},
		"as many as there may be":  {math.MaxInt32, curators, true},
	} {
		s, err := semaphore.New(m, dir, c.limit, c.opt)
		if (s != nil) != c.ok || errors.Is(err, session.ErrInvalid) == c.ok {
			t.Errorf("%s: %v, %v", what, s, err)
		}
	}
	plain, err := semaphore.New(m, dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	curator, err := semaphore.New(m, dir, 3, curators)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sem  *semaphore.Semaphore
		n    int
		says string
	}{
		{plain, 0, "0 leases"}, {plain, -1, "-1 leases"}, {plain, math.MinInt, "leases"}, {plain, math.MaxInt, "leases"},
		{curator, 2, "one lease"}, {curator, 0, "0 leases"},
	} {
		_, err := c.sem.AcquireN(t.Context(), c.n)
		_, tried := c.sem.TryAcquireN(t.Context(), c.n)
		for _, err := range []error{err, tried} {
			if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d: %v", c.n, err)
			}
		}
	}
	for n, s := range map[int]*semaphore.Semaphore{0: plain, -1: plain, math.MaxInt: plain, 2: curator} {
		if err := s.Resize(t.Context(), n); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Resize to %d: %v", n, err)
		}
	}
}

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	run(t, func(w world) {
		ctx, m := w.Context(), w.Connect()
		says := func(err error, want string) {
			t.Helper()
			testserver.CheckTexts(t, dir, map[string]testserver.ErrorText{"text": {Err: err, Want: want}})
		}
		sem, curator := w.semOn(m, 3), w.semOn(m, 3, curators)
		_, err := semaphore.New(m, dir, 0, nil)
		says(err, "semaphore: invalid argument: 0 leases: want 1 to 2147483647; nil option")
		says(sem.Unlock(), "unlock /a: lock is not held")
		says(curator.Resize(ctx, 4), "resize /a: invalid argument: Curator's layout stores no limit")
		const other = "another kind of lock, or another configuration, at this path: "
		w.Make(dir, "data")
		says(sem.Resize(ctx, 4), `resize /a: `+other+`the directory's data "data" is not a semaphore's`)
		w.Write(dir, "")
		w.Must(sem.Lock(ctx))
		says(w.semOn(m, 5).Lock(ctx), "acquire /a: "+other+"the limit is 3 leases, not 5")
		says(curator.Lock(ctx), "acquire /a: "+other+"other contenders do not use Curator's layout")
		w.Must(sem.Unlock())
		acquire := func(n int) error { return expect.Err(sem.AcquireN(ctx, n)) }
		says(acquire(4), "acquire /a: invalid argument: 4 leases: the limit is 3")
		w.Must(sem.Resize(ctx, 1))
		says(acquire(2), "acquire /a: invalid argument: weight 2: the limit is 1")
		ended, cancel := context.WithCancel(ctx)
		cancel()
		says(expect.Err(sem.Limit(ended)), "limit of /a: context canceled")
		_, err = semaphore.New(m, "/", 1, curators)
		says(err, "semaphore: invalid argument: a lock needs a directory of its own below /")
		w.Must(m.Close())
		says(expect.Err(sem.Limit(ctx)), "limit of /a: session manager closed")
		says(sem.Resize(ctx, 4), "resize /a: session manager closed")
		says(sem.ResetLimit(ctx), "reset the limit of /a: session manager closed")
		says(sem.Lock(ctx), "acquire /a: session manager closed")
	})
	run(t, func(w world) {
		w.Make(dir, "", zk.PermAll&^zk.PermRead)
		w.Want("Limit where the directory may not be read", expect.Err(w.sem(1).Limit(w.Context())), zk.ErrNoAuth)
	})
}

// A call with a limit other than the one in force gets an error with both numbers, and no lease. That also holds when no
// lease is held, as long as the directory exists.
func TestConflictOfLimits(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		l := w.take(w.sem(3), 1)
		if got := w.Data(dir); got != `{"maxLeases":3,"default":true,"version":1}` {
			t.Errorf("data %s", got)
		}
		for _, limit := range []int{1, 4, 1000} {
			other := w.sem(limit)
			w.says(expect.Err(other.Acquire(w.Context())), queue.ErrConflict, "3", fmt.Sprint(limit))
			w.Want("TryAcquire", expect.Err(other.TryAcquire(w.Context())), queue.ErrConflict)
			w.Want("Contenders", expect.Err(other.Contenders(w.Context())), queue.ErrConflict)
		}
		w.release(l)
		w.Want("Acquire of nobody's", expect.Err(w.sem(4).Acquire(w.Context())), queue.ErrConflict)
		w.contenders(0)
		w.release(w.take(w.sem(3), 3))
		w.Remove(dir) // the limit goes with the directory
		w.release(w.take(w.sem(4), 4))
	})
}

// Contenders with two limits come to a new directory at the same time. One limit gets into force, contenders with the
// other get a conflict, or find the semaphore busy before there is a limit, and no more leases are held than the limit
// allows.
func TestFirstComersOfTwoLimits(t *testing.T) {
	run(t, func(w world) {
		clients := map[int]*session.Manager{1: w.Connect(), 3: w.Connect()}
		type outcome struct {
			limit int
			lease *queue.Lease
			err   error
		}
		for round := range 30 {
			at := fmt.Sprint(dir, round)
			w.Make(at, "") // a directory that vanishes when empty could get both limits in turn
			results := make(chan outcome, 6)
			for limit, m := range clients {
				s, err := semaphore.New(m, at, limit)
				w.Must(err)
				for range 3 {
					go func() {
						l, err := s.TryAcquire(w.Context())
						results <- outcome{limit, l, err}
					}()
				}
			}
			w.Pass(time.Second)
			inForce := 1
			if strings.Contains(w.Data(at), "3") {
				inForce = 3
			}
			granted := 0
			for range cap(results) {
				switch r := <-results; {
				case r.err == nil && r.limit == inForce:
					granted++
					w.release(r.lease)
				case errors.Is(r.err, queue.ErrConflict) && r.limit != inForce:
					w.says(r.err, queue.ErrConflict, "1", "3")
				case !errors.Is(r.err, queue.ErrBusy):
					t.Errorf("for the limit of %d, when %d is in force: %v", r.limit, inForce, r.err)
				}
			}
			if granted > inForce {
				t.Errorf("%d grants where %d are in force", granted, inForce)
			}
		}
	})
}

// Data that is not a semaphore's is left alone, and each contender uses the limit that it was given. The format of a
// semaphore's data does not matter: a limit that was written by hand counts for everybody. A limit that New has written is
// a conflict for contenders with another limit.
func TestDataOfTheDirectory(t *testing.T) {
	type whose int
	const (
		foreign whose = iota
		byHand
		news
	)
	for data, whose := range map[string]whose{
		"10.0.0.7": foreign, "null": foreign, `{"maxLeases":0}`: foreign, `{"maxLeases":"3"}`: foreign, `{"maxLeases":3}x`: foreign,
		`{"maxLeases":2147483648}`: foreign, "\x00\xff": foreign,
		`{"maxLeases":3}`: byHand, ` { "maxLeases" : 3 } `: byHand, `{"maxLeases":3,"since":"1.0"}`: byHand,
		`{"maxLeases":3,"default":false}`: byHand,
		`{"maxLeases":3,"default":true}`:  news, `{"default":true, "maxLeases":3, "note": "of ours"}`: news,
	} {
		run(t, func(w world) {
			w.Make(dir, data)
			s, most := w.sem(2), map[bool]int{true: 2, false: 3}[whose == foreign]
			if whose == news {
				w.Want(data, expect.Err(s.TryAcquire(w.Context())), queue.ErrConflict)
				s = w.sem(3)
			}
			l := w.take(s, most)
			w.busy(s, 1)
			waits := w.begin(s, 1)
			if all, err := s.Contenders(w.Context()); err != nil || len(all) != 2 || !all[0].Holder || all[1].Holder {
				t.Errorf("%s: contenders %+v, %v", data, all, err)
			}
			w.release(l)
			w.release(waits.Get())
			if whose == foreign {
				w.Want("Resize to more", s.Resize(w.Context(), 5), queue.ErrConflict)
				w.Want("Resize to fewer", s.Resize(w.Context(), 1), queue.ErrConflict)
			}
			if got := w.Data(dir); got != data {
				t.Errorf("data %q, was %q", got, data)
			}
		})
	}
}

// A request for several leases is one node, whose name has the number. A busy try makes no node. It goes by the weights
// ahead and the limit in force.
func TestWeights(t *testing.T) {
	run(t, func(w world) {
		theirs, s := w.sem(5), w.sem(5)
		try := func(n int, free bool) {
			t.Helper()
			if free {
				w.release(w.take(s, n))
				return
			}
			w.ResetRequests()
			w.busy(s, n)
			expect.Requests(t, fmt.Sprint("writes of a busy try for ", n), w.Server, writes, 0)
		}
		try(5, true)
		three := w.take(theirs, 3)
		n, ok := queue.ParseNode(path.Base(three.Path()))
		if !ok || n.Weight != 3 || n.Prefix != queue.PrefixLease || !strings.Contains(three.Path(), "-x3-lease-") {
			t.Errorf("node %s: %+v", three.Path(), n)
		}
		try(2, true)
		try(3, false)
		waiter := w.begin(theirs, 4)
		try(1, false) // behind one that waits
		w.Must(theirs.Resize(w.Context(), 8))
		waiter.Get()
		try(1, true)
		try(2, false)
		w.Must(theirs.Resize(w.Context(), 7))
		try(1, false)
		w.release(three)
		try(3, true)
		try(4, false)
		w.release(waiter.Got)
	})
}

// A request for more leases than the limit in force is refused at once, whatever New was given. It reads the limit and
// creates no node, so it keeps out no other contender.
func TestMoreThanThereAre(t *testing.T) {
	run(t, func(w world) {
		holder, greedy := w.sem(3), w.sem(3)
		held := w.take(holder, 2)
		w.ResetRequests()
		w.says(expect.Err(greedy.AcquireN(w.Context(), 4)), session.ErrInvalid, "4 leases: the limit is 3")
		expect.Requests(t, "reads", w.Server, zktest.On(zktest.OpGetData, dir), 1)
		expect.Requests(t, "writes", w.Server, writes, 0)
		w.Must(holder.Resize(w.Context(), 6))
		w.release(held, w.take(holder, 1), w.take(greedy, 3))
		w.release(w.take(greedy, 4))
	})
}

// A busy try does not set the limit of a directory that has none yet. The next acquisition does.
func TestTrySetsNoLimit(t *testing.T) {
	run(t, func(w world) {
		w.Make(dir, "")
		node := w.Forge(dir, queue.PrefixLease)
		s := w.sem(1)
		w.busy(s, 1)
		if data := w.Data(dir); data != "" {
			t.Errorf("a busy try has written %q", data)
		}
		w.Remove(node)
		w.release(w.take(s, 1))
		if data := w.Data(dir); data == "" {
			t.Error("an acquisition has not set the limit")
		}
	})
}

// An acquisition and its release take two writes, for one lease or several, with or without a wait. The first acquisition
// takes one more, which sets the limit. In Curator's layout they take four.
func TestWrites(t *testing.T) {
	for what, c := range map[string]struct {
		opts             []semaphore.Option
		most, each, more int
	}{"own": {nil, 3, 2, 1}, "Curator's": {[]semaphore.Option{curators}, 1, 4, 0}} {
		run(t, func(w world) {
			w.Make(locks, "")
			w.Make(leases, "")
			m := w.Connect()
			s, other := w.semOn(m, 3, c.opts...), w.sem(3, c.opts...)
			mine := w.of(m, writes)
			once := func(how string, want int, get func() *queue.Lease) {
				t.Helper()
				w.ResetRequests()
				l := get()
				w.Must(expect.Err(l.Token(w.Context())))
				w.release(l)
				expect.Requests(t, what+", "+how+": writes", w.Server, mine, want)
			}
			once("the first", c.each+c.more, func() *queue.Lease { return w.take(s, 1) })
			once("several", c.each, func() *queue.Lease { return w.take(s, c.most) })
			held := []*queue.Lease{w.take(other, 1), w.take(other, 1), w.take(other, 1)}
			once("waited for", c.each, func() *queue.Lease {
				waits := w.begin(s, 1)
				w.release(held[0])
				return waits.Get()
			})
		})
	}
}

// A semaphore that is not used any more does not keep the session in memory that it has used last.
func TestEndedSessionIsFreed(t *testing.T) {
	run(t, func(w world) {
		m := w.Connect()
		s := w.semOn(m, 2)
		w.release(w.take(s, 1))
		old := weak.Make(w.Session(m))
		w.Lose(m)
		w.Session(m) // the next one
		zktest.Eventually(t, testserver.Patience, "the end of the session in memory", func() bool {
			runtime.GC()
			return old.Value() == nil
		})
		runtime.KeepAlive(s)
	})
}
