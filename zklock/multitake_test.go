package zklock_test

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	zklock "github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// joint is a MultiLock of the mutexes at /a, /b and /c, in virtual time, and another process with the same mutexes.
type joint struct {
	t      *testing.T
	server *zktest.Server
	m      *session.Manager
	all    *zklock.MultiLock
	others []*zklock.Mutex
	other  *session.Session
}

var jointPaths = []string{"/a", "/b", "/c"}

const jointTrip = 20 * time.Millisecond

// takeJointly runs f in a bubble. Each message takes half of jointTrip.
func takeJointly(t *testing.T, f func(j *joint), opts ...session.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		j := &joint{t: t, server: server}
		j.m = j.connect(opts...)
		j.all = j.multi(j.m)
		m := j.connect()
		for _, path := range jointPaths {
			one, err := zklock.New(m, path)
			j.must(err)
			j.others = append(j.others, one)
		}
		var err error
		j.other, err = m.Session(t.Context())
		j.must(err)
		j.must(j.all.Lock(t.Context())) // makes the directories
		j.must(j.all.Unlock())
		time.Sleep(time.Second)
		server.Delay(jointTrip / 2)
		server.ResetRequests()
		f(j)
		server.Delay(0)
	})
}

func (j *joint) connect(opts ...session.Option) *session.Manager {
	j.t.Helper()
	m, err := session.Connect(j.t.Context(), "zookeeper:2181", append([]session.Option{
		session.WithDialer(j.server.Dialer()), session.WithTimeout(10 * time.Second),
		session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	j.must(err)
	j.t.Cleanup(func() { _ = m.Close() })
	return m
}

func (j *joint) multi(m *session.Manager) *zklock.MultiLock {
	j.t.Helper()
	var locks []zklock.ContextLocker
	for _, path := range slices.Backward(jointPaths) {
		one, err := zklock.New(m, path)
		j.must(err)
		locks = append(locks, one)
	}
	all, err := zklock.Multi(locks...)
	j.must(err)
	return all
}

func (j *joint) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// want fails the test if the directories do not have so many nodes in a moment.
func (j *joint) want(when string, counts ...int) {
	j.t.Helper()
	time.Sleep(5 * jointTrip)
	var got []int
	for _, path := range jointPaths {
		names, _, err := j.other.Children(j.t.Context(), path)
		j.must(err)
		got = append(got, len(names))
	}
	if !slices.Equal(got, counts) {
		j.t.Errorf("%s there are %v nodes, want %v", when, got, counts)
	}
}

// made returns the directories of the creates of one session, in their order.
func (j *joint) made(s int64) (dirs []string) {
	for _, r := range j.server.Requests() {
		if r.Op == zktest.OpCreate && r.Session == s {
			dirs = append(dirs, path.Dir(r.Path))
		}
	}
	return dirs
}

// If one of the locks is held, the MultiLock keeps no node in its way or behind it: it waits in order.
func TestMultiWaitsInOrder(t *testing.T) {
	for busy := range jointPaths {
		t.Run(jointPaths[busy], func(t *testing.T) {
			takeJointly(t, func(j *joint) {
				ctx := j.t.Context()
				j.must(j.others[busy].Lock(ctx))
				locked := make(chan error, 1)
				go func() { locked <- j.all.Lock(ctx) }()
				counts := []int{0, 0, 0}
				for i := range busy {
					counts[i] = 1
				}
				counts[busy] = 2
				time.Sleep(time.Second)
				j.want("while it waits", counts...)
				j.must(j.others[busy].Unlock())
				j.must(<-locked)
				j.want("while it holds", 1, 1, 1)
				j.must(j.all.Unlock())
				j.want("in the end", 0, 0, 0)
			})
		})
	}
}

// Before a MultiLock enters the queues in order, the servers have confirmed that its first nodes are gone.
func TestMultiWaitsForItsRemovals(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		j.must(j.others[1].Lock(ctx))
		time.Sleep(time.Second)
		j.server.ResetRequests()
		held := j.server.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, "/c/")
		})
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		time.Sleep(time.Second)
		ours, err := j.m.Session(ctx)
		j.must(err)
		if made := j.made(ours.ID()); len(made) != 3 {
			j.t.Errorf("it has made nodes in %v before its first ones were gone", made)
		}
		held.Release()
		time.Sleep(time.Second)
		if made := j.made(ours.ID()); !slices.Equal(made[3:], []string{"/a", "/b"}) {
			j.t.Errorf("it has made nodes in %v", made)
		}
		j.must(j.others[1].Unlock())
		j.must(<-locked)
		j.must(j.all.Unlock())
	})
}

// Two MultiLocks enter at the same time, and each meets a node of the other. Both then take the locks in order, and neither
// waits for the other in a circle.
func TestMultiOverlap(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx, cancel := context.WithTimeout(j.t.Context(), time.Minute)
		defer cancel()
		second := j.connect()
		rival := j.multi(second)
		var sessions []int64
		for _, m := range []*session.Manager{j.m, second} {
			s, err := m.Session(ctx)
			j.must(err)
			sessions = append(sessions, s.ID())
		}
		// The last create of the first one is held back until the second one has a node there. The second one's node stays until
		// the first one has met it.
		var mu sync.Mutex // the connections of both are looked at
		creates := make(map[string]bool)
		where := ""
		lastCreate := j.server.HoldRequest(func(r zktest.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zktest.OpCreate && r.Session == sessions[0] {
				where = path.Dir(r.Path)
				creates[where] = true
			}
			return len(creates) == len(jointPaths)
		})
		var holders atomic.Int32
		var group sync.WaitGroup
		do := func(all *zklock.MultiLock) {
			err := all.Do(ctx, func(context.Context) error {
				if holders.Add(1) != 1 {
					j.t.Error("two hold")
				}
				time.Sleep(time.Second)
				holders.Add(-1)
				return nil
			})
			if err != nil {
				j.t.Error(err)
			}
		}
		group.Go(func() { do(j.all) })
		<-lastCreate.Hit()
		dir := where
		itsDelete := j.server.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpDelete && r.Session == sessions[1] && path.Dir(r.Path) == dir
		})
		group.Go(func() { do(rival) })
		<-itsDelete.Hit()
		lastCreate.Release()
		time.Sleep(time.Second)
		itsDelete.Release()
		group.Wait()
		for _, s := range sessions {
			made := j.made(s)
			if len(made) != 6 || !slices.Equal(made[3:], jointPaths) {
				j.t.Errorf("one has made nodes in %v: want all at once, and then in order", made)
			}
		}
		j.want("in the end", 0, 0, 0)
	})
}

// Each lock has one Acquire call, also if it is entered twice, one Traceparent call and one Hold call. The listings of a lock
// belong to its Acquire call.
func TestMultiTellsEachLockOnce(t *testing.T) {
	type key struct{}
	var mu sync.Mutex
	var told []string
	var parents atomic.Int64
	tell := func(what, path string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what+" "+path)
	}
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		told = nil
		parents.Store(0)
		j.must(j.others[1].Lock(ctx))
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		time.Sleep(time.Second)
		j.must(j.others[1].Unlock())
		j.must(<-locked)
		j.must(j.all.Unlock())
		want := "begin /a, begin /b, begin /c, hold /a, end /a 2 false, hold /b, end /b 2 false, hold /c, end /c 2 false, " +
			"release /c, release /b, release /a"
		if got := strings.Join(told, ", "); got != want {
			j.t.Errorf("told %s,\nwant %s", got, want)
		}
		if n := parents.Load(); n != int64(len(jointPaths)) {
			j.t.Errorf("%d Traceparent calls", n)
		}

		told = nil
		j.must(j.others[2].Lock(ctx))
		if ok, err := j.all.TryLock(ctx); ok || err != nil {
			j.t.Errorf("TryLock: %v, %v", ok, err)
		}
		want = "begin /a, begin /b, begin /c, end /c 0 true, end /a 0 true, end /b 0 true"
		if got := strings.Join(told, ", "); got != want {
			j.t.Errorf("a busy try: told %s,\nwant %s", got, want)
		}
		j.must(j.others[2].Unlock())
	}, session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			tell("begin", a.Path)
			return context.WithValue(ctx, key{}, a.Path), func(r session.AcquireResult) {
				tell("end", fmt.Sprint(a.Path, " ", r.Attempts, " ", r.Busy))
				if r.Err != nil {
					t.Errorf("%s: %v", a.Path, r.Err)
				}
			}
		},
		Traceparent: func(context.Context) string {
			parents.Add(1)
			return ""
		},
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if of, _ := ctx.Value(key{}).(string); r.Op == "getChildren" && of != r.Path {
				t.Errorf("%s is listed for %q", r.Path, of)
			}
			return ctx, nil
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) {
			tell("hold", h.Path)
			return nil
		},
		Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
			tell("release", h.Path)
			return ctx, nil
		},
	}))
}
