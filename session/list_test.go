package session_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Every option adds its request ahead of the listing, in one flight, and nothing else.
func TestList(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		e.makes("a", "b")
		must(t, expect.Err(e.other.Set(patient(t), e.d, []byte("the limit"), -1)))
		for bits := range 16 {
			o := session.ListOptions{Sync: bits&1 > 0, Data: bits&2 > 0, Watch: bits&4 > 0, Children: bits&8 > 0}
			before := e.asked()
			l, err := e.s.List(patient(t), e.d, o)
			must(t, err)
			slices.Sort(l.Names)
			if !slices.Equal(l.Names, []string{"a", "b"}) || l.Stat == nil || l.Stat.NumChildren != 2 {
				t.Errorf("%+v: %q, stat %+v", o, l.Names, l.Stat)
			}
			if (l.DataStat != nil) != o.Data || o.Data && (string(l.Data) != "the limit" || l.DataStat.Mzxid != l.Stat.Mzxid) {
				t.Errorf("%+v: data %q, stat %+v", o, l.Data, l.DataStat)
			}
			if (l.Directory != nil) != (o.Data && o.Watch) || (l.Children != nil) != o.Children {
				t.Errorf("%+v: watches %v, %v", o, l.Directory, l.Children)
			}
			want := [3]int{0, 0, 1}
			if o.Sync {
				want[0] = 1
			}
			if o.Data {
				want[1] = 1
			}
			after := e.asked()
			for i := range after {
				after[i] -= before[i]
			}
			if after != want {
				t.Errorf("%+v: sync, getData, getChildren: %v, want %v", o, after, want)
			}
			for what, w := range map[string]*session.Watch{"directory": l.Directory, "children": l.Children} {
				if w != nil && w.Event() != session.WatchPending {
					t.Errorf("%+v: the watch on the %s has ended: %v", o, what, w.Event())
				}
			}
			if l.Directory != nil {
				must(t, expect.Err(e.other.Set(patient(t), e.d, []byte("the limit"), -1)))
				wantEvent(t, l.Directory, session.WatchChanged)
			}
			if l.Children != nil {
				if data, stat := l.Children.Data(); data != nil || stat != nil {
					t.Errorf("a watch on children has data %q, %v", data, stat)
				}
				n, err := makeNode(patient(t), e.other, e.d+"/c", nil)
				must(t, err)
				wantEvent(t, l.Children, session.WatchChanged)
				must(t, e.other.Delete(patient(t), n, -1))
			}
		}
		_, err := e.s.List(patient(t), e.d+"/none", session.ListOptions{Sync: true, Data: true, Watch: true, Children: true})
		wantErr(t, "no directory", err, zk.ErrNoNode)
		wantErr(t, "a bad path", expect.Err(e.s.List(patient(t), "none", session.ListOptions{})), session.ErrInvalid)
	})
}

// asked returns how many syncs, reads and listings of the directory there were.
func (e *env) asked() [3]int {
	return [3]int{e.Count(zktest.On(zktest.OpSync, e.d)), e.Count(zktest.On(zktest.OpGetData, e.d)), e.Count(zktest.On(zktest.OpGetChildren2, e.d))}
}

// The requests of a List leave together, in order, and so do those of an Enter, behind its create.
func TestListInOrder(t *testing.T) {
	for _, enters := range []bool{false, true} {
		inBubble(t, func(t *testing.T, e *env) {
			ctx, first := t.Context(), fmt.Sprint(zktest.OpSync, " ", e.d)
			held := e.HoldReply(zktest.On(zktest.OpSync, e.d))
			call := func() error {
				return expect.Err(e.s.List(ctx, e.d, session.ListOptions{Sync: true, Data: true, Watch: true}))
			}
			if enters {
				first = fmt.Sprint(zktest.OpCreate, " ", e.d, "/one")
				held = e.HoldReply(zktest.On(zktest.OpCreate, e.d+"/"))
				call = func() error {
					_, err := e.s.Enter(ctx, session.NewNode{Dir: e.d, Name: "one", Fixed: true, Directory: true})
					return err
				}
			}
			e.ResetRequests()
			ended := expect.Go(func() error { return call() })
			synctest.Wait()
			want := []string{first, fmt.Sprint(zktest.OpGetData, " ", e.d), fmt.Sprint(zktest.OpGetChildren2, " ", e.d)}
			if got := sent(e.Requests()); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			held.Release()
			must(t, <-ended)
		})
	}
}

// A listing does not count if its sync was refused, or if the directory was made
// between the read of its data and the listing. All of it is asked again.
func TestListCountsTogether(t *testing.T) {
	o := session.ListOptions{Sync: true, Data: true, Watch: true, Children: true}
	for what, spoils := range map[string]func(e *env, srv *zktest.Server){
		"the sync is refused": func(e *env, srv *zktest.Server) {
			var done atomic.Bool
			testserver.Switch(srv).Throttle(func(r zktest.Request) bool { return r.Op == zktest.OpSync && !done.Swap(true) })
		},
		"the directory is made": func(e *env, srv *zktest.Server) {
			must(e.t, srv.DeleteNode(e.d))
			held := srv.HoldRequest(zktest.On(zktest.OpGetChildren2, e.d))
			go func() {
				<-held.Hit()
				must(e.t, expect.Err(e.other.Create(e.t.Context(), e.d, nil, session.Persistent)))
				held.Release()
			}()
		},
	} {
		inBubble(t, func(t *testing.T, e *env) {
			before := e.asked()
			spoils(e, e.Server)
			l, err := e.s.List(t.Context(), e.d, o)
			must(t, err)
			after := e.asked()
			if after[0]-before[0] != 2 || l.DataStat == nil || l.DataStat.Mzxid != l.Stat.Mzxid ||
				l.Directory.Event() != session.WatchPending || l.Children.Event() != session.WatchPending {
				t.Errorf("%s: asked %v after %v, %+v", what, after, before, l)
			}
		})
	}
}

// A watch on the directory is shared: while it is pending, nothing is sent, and its data are those of the directory. A List
// that comes while another caller's request is in flight waits for its answer.
func TestListSharesTheWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		held := e.HoldReply(zktest.On(zktest.OpGetData, e.d))
		o := session.ListOptions{Data: true, Watch: true}
		lists := make(chan *session.Listing, 2)
		for range 2 {
			go func() {
				l, err := e.s.List(t.Context(), e.d, o)
				must(t, err)
				lists <- l
			}()
			synctest.Wait()
		}
		held.Release()
		one, two := <-lists, <-lists
		if n := e.Count(zktest.On(zktest.OpGetData, e.d)); one.Directory != two.Directory || n != 1 {
			t.Errorf("%v, %v after %d requests", one.Directory, two.Directory, n)
		}
		one.DataStat.Mzxid++ // the caller may change it
		l, err := e.s.List(t.Context(), e.d, o)
		must(t, err)
		if l.Directory != two.Directory || l.DataStat.Mzxid != l.Stat.Mzxid || e.Count(zktest.On(zktest.OpGetData, e.d)) != 1 {
			t.Errorf("%+v", l)
		}
		must(t, e.DeleteNode(e.d))
		synctest.Wait()
		wantErr(t, "no directory", expect.Err(e.s.List(t.Context(), e.d, o)), zk.ErrNoNode)
	})
}

// Enter reads the directory in the flight of the create, and again with each listing.
func TestEnterReadsDirectory(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		for _, lost := range []bool{false, true} {
			e.anew()
			must(t, expect.Err(e.other.Set(patient(t), e.d, []byte("old"), -1)))
			want := "old"
			if lost {
				e.CutAfterCommit(zktest.On(zktest.OpCreate, e.d+"/"))
				want = "new"
			}
			search := e.HoldRequest(zktest.On(zktest.OpMulti, e.d))
			ended := e.begin(patient(t), session.NewNode{Dir: e.d, Name: "lock-", Directory: true})
			if lost {
				expect.Receive(t, "the search", search.Hit())
				_, err := e.other.Set(patient(t), e.d, []byte("new"), -1)
				must(t, err)
				search.Release()
			}
			got := expect.Receive(t, "Enter", ended)
			n := e.want(got.node, got.err)
			if string(n.Data) != want || n.DataStat.Mzxid != n.Stat.Mzxid || n.Directory.Event() != session.WatchPending || n.Children != nil {
				t.Errorf("lost %v: data %q, event %v, %+v", lost, n.Data, n.Directory.Event(), n.Listing)
			}
			must(t, expect.Err(e.other.Set(patient(t), e.d, []byte("newer"), -1)))
			wantEvent(t, n.Directory, session.WatchChanged)
			search.Release()
		}
	})
}
