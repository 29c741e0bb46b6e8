package semaphore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	semaphore "github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zktest"
)

// meeting is a path at which the two layouts meet.
type meeting struct{ dir string }

func (m meeting) sem(t *testing.T, curators bool) *semaphore.Semaphore {
	t.Helper()
	if curators {
		return newSem(t, connect(t), m.dir, 1, semaphore.WithCuratorLayout())
	}
	return newSem(t, connect(t), m.dir, 1)
}

// exists reports whether a directory below the path is there.
func (m meeting) exists(t *testing.T, below string) bool {
	t.Helper()
	ok, _, err := testserver.Admin(t).Exists(m.dir + below)
	must(t, err)
	return ok
}

// reap deletes a directory if it is there and empty, as the servers do after a while.
func (m meeting) reap(t *testing.T, below string) {
	t.Helper()
	err := testserver.Admin(t).Delete(m.dir+below, -1)
	if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
		must(t, err)
	}
}

// contenders returns the paths of all contenders, of both layouts.
func (m meeting) contenders(t *testing.T) (all []string) {
	t.Helper()
	for _, below := range []string{"", "/locks", "/leases"} {
		if !m.exists(t, below) {
			continue
		}
		for _, name := range testserver.Children(t, m.dir+below) {
			if _, ok := queue.ParseNode(name); ok {
				all = append(all, m.dir+below+"/"+name)
			}
		}
	}
	return all
}

// The two layouts exclude each other at a path, whichever comes first, whichever directories were there before, and whichever
// empty ones the servers have removed since. The one that comes second gets a conflict, and leaves nothing behind.
func TestLayoutsMeet(t *testing.T) {
	ctx := patient(t)
	for _, before := range [][]string{nil, {""}, {"/locks"}, {"/leases"}, {"/locks", "/leases"}} {
		for _, curatorsFirst := range []bool{false, true} {
			for _, reaped := range [][]string{nil, {"/locks"}, {"/leases"}, {"/leases", "/locks"}} {
				t.Run(fmt.Sprintf("%q, Curator's first %v, reaped %q", before, curatorsFirst, reaped), func(t *testing.T) {
					m := meeting{testserver.Path(t)}
					for _, below := range before {
						if !m.exists(t, below) {
							persistent(t, m.dir+below, "")
						}
					}
					l, err := m.sem(t, curatorsFirst).Acquire(ctx)
					must(t, err)
					for _, below := range reaped {
						m.reap(t, below)
					}
					second := m.sem(t, !curatorsFirst)
					_, err = second.TryAcquire(ctx)
					wantErr(t, "TryAcquire", err, queue.ErrConflict)
					for _, below := range reaped {
						m.reap(t, below)
					}
					_, err = second.Acquire(ctx)
					wantErr(t, "Acquire", err, queue.ErrConflict)
					if all := m.contenders(t); !slices.Equal(all, []string{l.Path()}) {
						t.Errorf("contenders %q, want %s alone", all, l.Path())
					}
					must(t, l.Err())
					release(t, l)
					release(t, take(t, second, 1)) // the directories alone are no conflict
				})
			}
		}
	}
}

// A contender at Curator's gate, without a lease, is one too.
func TestOwnLayoutMeetsTheGate(t *testing.T) {
	for _, leases := range []bool{true, false} {
		m := meeting{testserver.Path(t)}
		persistent(t, m.dir+"/locks", "")
		if leases {
			persistent(t, m.dir+"/leases", "")
		}
		waits := forge(t, m.dir+"/locks", queue.PrefixLock)
		_, err := m.sem(t, false).Acquire(patient(t))
		wantErr(t, "Acquire", err, queue.ErrConflict)
		if all := m.contenders(t); !slices.Equal(all, []string{waits}) {
			t.Errorf("contenders %q", all)
		}
	}
}

// Java takes a lease and leaves the gate while we look: we look at the gate first, and then at the leases, also if there was no
// directory of leases when we came.
func TestOwnLayoutLooksBehindTheGate(t *testing.T) {
	m := meeting{testserver.Path(t)}
	persistent(t, m.dir+"/locks", "")
	java := forge(t, m.dir+"/locks", queue.PrefixLock)
	proxy := testserver.Proxy(t)
	look := proxy.HoldRequest(listing(m.dir + "/locks"))
	c := begin(t, newSem(t, behind(t, proxy), m.dir, 1), 1)
	receive(t, "the look at the gate", look.Hit())
	persistent(t, m.dir+"/leases", "")
	lease := forge(t, m.dir+"/leases", queue.PrefixLease)
	testserver.Delete(t, java)
	look.Release()
	wantErr(t, "AcquireN", c.fail(t), queue.ErrConflict)
	if all := m.contenders(t); !slices.Equal(all, []string{lease}) {
		t.Errorf("contenders %q", all)
	}
}

// One comes while the other is on its way. The one whose node stands later sees the other.
func TestLayoutsMeetOnTheWay(t *testing.T) {
	for _, c := range []struct {
		name     string
		curators bool // the first comes in Curator's layout
		before   func(dir string) zktest.Match
		sees     int // the first (0) or the second (1) sees the other
	}{
		{"Curator's looks for us later", true, listing, 1},
		{"Curator's is at the gate", true, func(dir string) zktest.Match { return zktest.On(zktest.OpCreate, dir+"/leases/") }, 1},
		{"we look later", false, listing, 1},
		{"we come later", false, func(dir string) zktest.Match { return zktest.On(zktest.OpCreate, dir+"/_c_") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := meeting{testserver.Path(t)}
			persistent(t, m.dir+"/locks", "")
			persistent(t, m.dir+"/leases", "")
			proxy := testserver.Proxy(t)
			opts := []semaphore.Option{}
			if c.curators {
				opts = append(opts, semaphore.WithCuratorLayout())
			}
			held := proxy.HoldRequest(c.before(m.dir))
			first := begin(t, newSem(t, behind(t, proxy), m.dir, 1, opts...), 1)
			receive(t, "the first", held.Hit())
			if c.name == "we look later" {
				zktest.Eventually(t, testserver.Patience, "our node", func() bool { return len(m.contenders(t)) == 1 })
			}
			second := begin(t, m.sem(t, !c.curators), 1)
			receive(t, "the second", second.done)
			held.Release()
			receive(t, "the first", first.done)
			calls := []*call{first, second}
			wantErr(t, "who sees the other", calls[c.sees].err, queue.ErrConflict)
			in := calls[1-c.sees]
			must(t, in.err)
			must(t, in.lease.Err())
			if all := m.contenders(t); !slices.Equal(all, []string{in.lease.Path()}) {
				t.Errorf("contenders %q, want %s alone", all, in.lease.Path())
			}
		})
	}
}
