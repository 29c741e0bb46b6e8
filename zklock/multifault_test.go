package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	zklock "github.com/turnstile-go/turnstile/zklock"
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

// The connection breaks at any request of an Unlock, or a node is gone already when its delete comes. Unlock returns nil,
// and nothing is left.
func TestMultiUnlockBreaksAtEachRequest(t *testing.T) {
	for at := range jointPaths {
		for what, fault := range map[string]func(*joint, zktest.Match){
			"the request is lost": func(j *joint, m zktest.Match) { j.server.CutBefore(m) },
			"the reply is lost":   func(j *joint, m zktest.Match) { j.server.CutAfterCommit(m) },
			"the node is gone": func(j *joint, m zktest.Match) {
				held := j.server.HoldRequest(m)
				go func() {
					<-held.Hit()
					names, _, err := j.other.Children(context.Background(), jointPaths[at])
					if err == nil {
						err = j.other.Delete(context.Background(), jointPaths[at]+"/"+names[0], -1)
					}
					if err != nil {
						j.t.Error(err)
					}
					held.Release()
				}()
			},
		} {
			t.Run(what+" at "+jointPaths[at], func(t *testing.T) {
				takeJointly(t, func(j *joint) {
					ctx := j.t.Context()
					ours, err := j.m.Session(ctx)
					j.must(err)
					j.must(j.all.Lock(ctx))
					fault(j, func(r zktest.Request) bool {
						return r.Op == zktest.OpDelete && r.Session == ours.ID() && path.Dir(r.Path) == jointPaths[at]
					})
					j.must(j.all.Unlock())
					time.Sleep(5 * time.Second)
					j.want("in the end", 0, 0, 0)
					j.must(j.all.Lock(ctx))
					j.must(j.all.Unlock())
				})
			})
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

// If the session is lost while one of the locks is entered in the same flight, no hook is told that the others are held: their
// nodes are gone.
func TestMultiLosesSomeInItsFlight(t *testing.T) {
	var held []string
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		ours, err := j.m.Session(ctx)
		j.must(err)
		var creates atomic.Int64
		last := j.server.HoldRequest(func(r zktest.Request) bool {
			return r.Op == zktest.OpCreate && r.Session == ours.ID() && creates.Add(1) == int64(len(jointPaths))
		})
		held = nil
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		<-last.Hit()
		time.Sleep(time.Second) // the others have their turns
		j.must(j.server.Expire(ctx, ours.ID()))
		last.Release()
		j.must(<-locked)
		if len(held) != len(jointPaths) {
			j.t.Errorf("told that %q are held", held)
		}
		j.must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	}, session.WithTrace(session.Trace{Hold: func(_ context.Context, h session.HoldInfo) func(error) {
		held = append(held, h.Node)
		return nil
	}}))
}

// A request that comes while the MultiLock, which has that lock, waits for another one is heard as well: f is not called.
func TestMultiRevokedBeforeItHolds(t *testing.T) {
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		j.must(j.others[1].Lock(ctx))
		done := make(chan error, 1)
		go func() {
			done <- j.all.Do(ctx, func(context.Context) error {
				j.t.Error("f is called")
				return nil
			})
		}()
		time.Sleep(time.Second)
		names, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		_, err = j.other.Set(ctx, "/a/"+names[0], []byte(queue.RevokeMessage), -1)
		j.must(err)
		time.Sleep(time.Second)
		j.must(j.others[1].Unlock())
		if err := <-done; !errors.Is(err, queue.ErrRevoked) {
			j.t.Errorf("Do: %v", err)
		}
		j.want("in the end", 0, 0, 0)
	})
}

// If a program gives one of the locks up on request, while the MultiLock waits for another one, it begins again.
func TestMultiGivesUpOnRequest(t *testing.T) {
	giveUp := session.WithTrace(session.Trace{Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
		if l, ok := queue.LeaseFrom(ctx); ok && path.Dir(l.Path()) == "/a" {
			go func() {
				select {
				case <-l.Revoked():
					_ = l.Release(context.Background())
				case <-l.Done():
				}
			}()
		}
		return nil
	}})
	takeJointly(t, func(j *joint) {
		ctx := j.t.Context()
		j.must(j.others[1].Lock(ctx))
		locked := make(chan error, 1)
		go func() { locked <- j.all.Lock(ctx) }()
		time.Sleep(time.Second)
		names, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		_, err = j.other.Set(ctx, "/a/"+names[0], []byte(queue.RevokeMessage), -1)
		j.must(err)
		time.Sleep(time.Second)
		again, _, err := j.other.Children(ctx, "/a")
		j.must(err)
		if len(again) != 1 || again[0] == names[0] {
			j.t.Errorf("%q in the first, after %q", again, names)
		}
		j.must(j.others[1].Unlock())
		j.must(<-locked)
		j.must(j.all.Unlock())
		j.want("in the end", 0, 0, 0)
	}, giveUp)
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
