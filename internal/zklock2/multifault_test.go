package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	queue "github.com/turnstile-go/turnstile/internal/queue2"
	zklock "github.com/turnstile-go/turnstile/internal/zklock2"
	"github.com/turnstile-go/turnstile/zktest"
)

// The connection breaks at any request of a MultiLock, before the servers get it or after they have carried it out. The
// MultiLock holds one node of each lock all the same, and leaves nothing.
func TestMultiConnectionBreaksAtEachRequest(t *testing.T) {
	type cut func(*zktest.Server, zktest.Match) *zktest.Fault
	for how, cut := range map[string]cut{"before": (*zktest.Server).CutBefore, "after": (*zktest.Server).CutAfterCommit} {
		for _, busy := range []bool{false, true} {
			for n, hit := 1, true; hit; n++ {
				t.Run(fmt.Sprintf("%s request %d, busy %v", how, n, busy), func(t *testing.T) {
					takeJointly(t, func(j *joint) {
						ctx := j.t.Context()
						if busy {
							j.must(j.others[1].Lock(ctx))
						}
						ours, err := j.m.Session(ctx)
						j.must(err)
						var mu sync.Mutex // the connections of both processes are looked at
						seen := make(map[int32]bool)
						fault := cut(j.server, func(r zktest.Request) bool {
							mu.Lock()
							defer mu.Unlock()
							if r.Session == ours.ID() && r.Xid > 0 && r.Op != zktest.OpConnect && r.Op != zktest.OpSync {
								seen[r.Xid] = true
							}
							return len(seen) == n
						})
						locked := make(chan error, 1)
						go func() { locked <- j.all.Lock(ctx) }()
						time.Sleep(time.Second)
						if busy {
							j.must(j.others[1].Unlock())
						}
						j.must(<-locked)
						j.want("while it holds", 1, 1, 1)
						if !j.all.Held() {
							j.t.Error("not held")
						}
						j.must(j.all.Unlock())
						time.Sleep(5 * time.Second)
						j.want("in the end", 0, 0, 0)
						select {
						case <-fault.Hit():
						default:
							hit = false
						}
					})
				})
			}
		}
	}
}

// The session is lost after any time that a MultiLock was at work. It goes on in the next session, and leaves nothing.
func TestMultiSessionLostAtEachMoment(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for after := time.Duration(0); after < 5*jointTrip; after += jointTrip / 4 {
			t.Run(fmt.Sprintf("after %v, busy %v", after, busy), func(t *testing.T) {
				takeJointly(t, func(j *joint) {
					ctx := j.t.Context()
					if busy {
						j.must(j.others[1].Lock(ctx))
					}
					ours, err := j.m.Session(ctx)
					j.must(err)
					locked := make(chan error, 1)
					go func() { locked <- j.all.Lock(ctx) }()
					time.Sleep(after)
					j.must(j.server.Expire(ctx, ours.ID()))
					if busy {
						time.Sleep(time.Second)
						j.must(j.others[1].Unlock())
					}
					j.must(<-locked)
					time.Sleep(5 * time.Second)
					if j.all.Held() { // otherwise it was lost with the session
						j.want("while it holds", 1, 1, 1)
					}
					_ = j.all.Unlock()
					j.want("in the end", 0, 0, 0)
					soon, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					j.must(j.all.Lock(soon))
					j.must(j.all.Unlock())
				})
			})
		}
	}
}

// If one of the locks is lost while the MultiLock waits for another, it gives up all and begins again.
func TestMultiLosesOneWhileItWaits(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		j.must(j.others[1].Lock(ctx))
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		time.Sleep(time.Second)
		names, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		if len(names) != 1 {
			j.t.Fatalf("%q in the first", names)
		}
		j.must(j.other.Delete(ctx, "/a/"+names[0], -1))
		time.Sleep(time.Second)
		again, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		if len(again) != 1 || again[0] == names[0] {
			j.t.Errorf("%q in the first, after %q", again, names)
		}
		j.want("while it waits", 1, 2, 0)
		j.must(j.others[1].Unlock())
		j.must(<-locked)
		j.must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	})
}

// A request to give one of the locks up ends the context of a Do of all of them.
func TestMultiRevoked(t *testing.T) {
	takeJointly(t, func(j *joint) {
		err := j.all.Do(j.t.Context(), func(ctx context.Context) error {
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				j.t.Error("ended without a request")
			}
			l, _ := zklock.MultiLeaseFrom(ctx)
			if _, err := j.other.Set(ctx, l.Leases()[2].Path(), []byte(queue.RevokeMessage), -1); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				j.t.Error("the context does not end")
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, queue.ErrRevoked) {
			j.t.Errorf("Do: %v", err)
		}
	})
}
