package queue_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	writing = queue.Request{Kind: queue.Writer()}
	reading = queue.Request{Kind: queue.Reader()}
)

// place is the directory of a lock on some server.
type place struct {
	*testing.T
	addr  string
	dir   string
	admin *zk.Conn
}

// onServers runs f on the server in this process, and on the one that all tests share, which is a real one if there is one.
func onServers(t *testing.T, f func(p *place)) {
	t.Run("in process", func(t *testing.T) {
		addr := zktest.Start(t).Addr()
		admin, _, err := zk.Connect([]string{addr}, testserver.Patience, zk.WithLogInfo(false))
		expect.NoError(t, err)
		t.Cleanup(admin.Close)
		f(newPlace(t, addr, admin))
	})
	t.Run("shared", func(t *testing.T) { f(sharedPlace(t)) })
}

func sharedPlace(t *testing.T) *place {
	return newPlace(t, testserver.Server(t).Addr(0), testserver.Admin(t))
}

// newPlace makes a directory that stays, so that the requests of contenders are the same each time.
func newPlace(t *testing.T, addr string, admin *zk.Conn) *place {
	p := &place{t, addr, testserver.Path(t), admin}
	_, err := admin.Create(p.dir, nil, 0, zk.WorldACL(zk.PermAll))
	expect.NoError(t, err)
	return p
}

// queue returns the queue as another process has it, with a manager of its own.
func (p *place) queue(opts ...session.Option) *queue.Queue {
	p.Helper()
	m := testserver.Connect(p, p.addr, append([]session.Option{session.WithTimeout(testserver.Patience)}, opts...)...)
	q, err := queue.New(m, p.dir)
	expect.NoError(p, err)
	return q
}

// proxied returns the queue of a process behind a proxy.
func (p *place) proxied() (*queue.Queue, *zktest.Proxy) {
	p.Helper()
	proxy := zktest.StartProxy(p, p.addr)
	return (&place{p.T, proxy.Addr(), p.dir, p.admin}).queue(), proxy
}

// writer acquires the write lock.
func (p *place) writer(q *queue.Queue) *queue.Lease {
	p.Helper()
	l, err := q.Acquire(expect.Patient(p), writing)
	expect.NoError(p, err)
	return l
}

// beside takes the read lock beside a write lock.
func (p *place) beside(l *queue.Lease) *queue.Turn {
	p.Helper()
	t, _, err := beside(expect.Patient(p), l)
	expect.NoError(p, err)
	return t
}

func beside(ctx context.Context, l *queue.Lease) (*queue.Turn, queue.Effort, error) {
	r := reading
	r.Prefix, r.Weight = queue.PrefixRead, 1 // as Acquiring completes it
	return l.Turn().Beside(ctx, l, r)
}

// forge makes an ephemeral node as another library does. A name that ends in digits is made as it is.
func (p *place) forge(name string) (made string) {
	p.Helper()
	flags := int32(zk.FlagEphemeral | zk.FlagSequence)
	if strings.HasSuffix(name, "0") {
		flags = zk.FlagEphemeral
	}
	made, err := p.admin.Create(p.dir+"/"+name, nil, flags, zk.WorldACL(zk.PermAll))
	expect.NoError(p, err)
	return made
}

// curator returns the beginning of a name that Curator gives.
func curator(prefix string) string { return "_c_" + uuid.NewString() + "-" + prefix }

func (p *place) delete(node string) {
	p.Helper()
	expect.NoError(p, p.admin.Delete(node, -1))
}

// nodes returns the nodes that have a prefix.
func (p *place) nodes(prefix string) (out []string) {
	p.Helper()
	names, _, err := p.admin.Children(p.dir)
	expect.NoError(p, err)
	for _, name := range names {
		if n, _ := queue.ParseNode(name); n.Prefix == prefix {
			out = append(out, p.dir+"/"+name)
		}
	}
	return out
}

func (p *place) waitNodes(prefix string, n int) {
	p.Helper()
	zktest.Eventually(p, testserver.Patience, prefix, func() bool { return len(p.nodes(prefix)) == n })
}

// waiting is a writer that waits, in a process of its own.
type waiting struct {
	*place
	q       *queue.Queue
	watches chan struct{} // has a value for each time at which it knows whom it waits for
	got     chan *queue.Lease
}

// wait begins to acquire the write lock, and returns when that waits.
func (p *place) wait() *waiting {
	p.Helper()
	w := &waiting{place: p, watches: make(chan struct{}, 100), got: make(chan *queue.Lease, 1)}
	w.q = p.queue(session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, i session.WatchInfo) (context.Context, func(error)) {
			return ctx, testserver.WhenKnown(i, func() { w.watches <- struct{}{} })
		},
	}))
	ctx := expect.Patient(p)
	go func() {
		l, err := w.q.Acquire(ctx, writing)
		if err != nil {
			p.Error(err)
		}
		w.got <- l
	}()
	w.again()
	return w
}

// again waits until the writer watches somebody once more.
func (w *waiting) again() {
	w.Helper()
	expect.Receive(w, "the writer behind to watch", w.watches)
}

// pending fails the test if the writer has the lock, while the servers say who has it. What they have told the writer's process
// by now, it knows: a request comes back behind the events.
func (w *waiting) pending() {
	w.Helper()
	all, err := w.q.Contenders(expect.Patient(w), writing.Kind)
	expect.NoError(w, err)
	if len(all) < 2 || !all[0].Holder || all[len(all)-1].Holder {
		w.Fatalf("in the queue: %+v", all)
	}
	select {
	case l := <-w.got:
		w.Fatalf("the writer behind has the lock: %v", l)
	default:
	}
}

// goes waits until the writer has the lock, and releases it.
func (w *waiting) goes() {
	w.Helper()
	l := expect.Receive(w, "the writer behind", w.got)
	expect.NoError(w, l.Release(expect.Patient(w)))
}

func (p *place) leave(t *queue.Turn) {
	p.Helper()
	expect.Receive(p, "the removal", t.Leave(expect.Patient(p)).Done())
}

// A writer goes on as a reader. The next writer does not go by the event of the first writer's node, be it ours or
// Curator's: it lists again, and waits for the reader that is there now.
func TestDowngradedWriterLetsNobodyIn(t *testing.T) {
	onServers(t, func(p *place) {
		p.Run("ours", func(t *testing.T) {
			p := newPlace(t, p.addr, p.admin)
			first := p.writer(p.queue())
			next := p.wait()
			reader := p.beside(first)
			expect.NoError(t, first.Release(expect.Patient(t)))
			next.again()
			next.pending()
			of, _ := queue.ParseNode(path.Base(first.Path()))
			if n, _ := queue.ParseNode(path.Base(reader.Path())); n.Sequence != of.Sequence || n.Prefix != queue.PrefixRead {
				t.Errorf("%s beside %s", reader.Path(), first.Path())
			}
			p.leave(reader)
			next.goes()
		})
		p.Run("Curator's", func(t *testing.T) {
			p := newPlace(t, p.addr, p.admin)
			first := p.forge(curator(queue.PrefixWrite))
			next := p.wait()
			reader := p.forge(curator(queue.PrefixRead) + first[len(first)-10:])
			p.delete(first)
			next.again()
			next.pending()
			p.delete(reader)
			next.goes()
		})
	})
}

// A writer that waits behind a reader of another library, which waits behind a writer that goes on as a reader, waits for both
// readers, whichever goes first.
func TestDowngradedWriterAndReaderBehind(t *testing.T) {
	onServers(t, func(p *place) {
		for name, theirsFirst := range map[string]bool{"their reader goes first": true, "our reader goes first": false} {
			p.Run(name, func(t *testing.T) {
				p := newPlace(t, p.addr, p.admin)
				first := p.writer(p.queue())
				theirs := p.forge(curator(queue.PrefixRead))
				next := p.wait()
				reader := p.beside(first)
				expect.NoError(t, first.Release(expect.Patient(t)))
				next.again()
				next.pending()
				if theirsFirst {
					p.delete(theirs)
					next.pending()
					p.leave(reader)
				} else {
					p.leave(reader)
					next.pending()
					p.delete(theirs)
				}
				next.goes()
			})
		}
	})
}

// A reply to the create of the reader's node, or the create itself, is lost. The reader gets its place all the same, with
// the token of the writer.
func TestBesideAfterLostReply(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"the create is lost": (*zktest.Proxy).CutBefore, "its reply is lost": (*zktest.Proxy).CutAfterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			p := sharedPlace(t)
			q, proxy := p.proxied()
			first := p.writer(q)
			next := p.wait()
			fault(proxy, zktest.On(zktest.OpCreate, p.dir))
			reader := p.beside(first)
			p.waitNodes(queue.PrefixRead, 1)
			expect.NoError(t, first.Release(expect.Patient(t)))
			next.again()
			next.pending()
			p.leave(reader)
			next.goes()
		})
	}
}

// The reader has the token of the writer, whether or not anybody has asked for that before. Its own node is younger than those
// that wait behind it, whose tokens must be higher.
func TestBesideToken(t *testing.T) {
	for name, early := range map[string]bool{"not known before": false, "known before": true} {
		t.Run(name, func(t *testing.T) {
			p := sharedPlace(t)
			ctx := expect.Patient(t)
			q, proxy := p.proxied()
			first := p.writer(q)
			if early {
				_, err := first.Token(ctx)
				expect.NoError(t, err)
			}
			next := p.wait()
			reader := p.beside(first).Lease(ctx, nil)
			of, err := first.Token(ctx)
			expect.NoError(t, err)
			expect.NoError(t, first.Release(ctx))
			reader.Turn().WatchNow()
			zktest.Eventually(t, testserver.Patience, "the watch on the reader's node", func() bool {
				return proxy.Count(zktest.On(zktest.OpGetData, reader.Path())) > 0
			})
			_, err = q.Contenders(ctx, reading.Kind) // is answered behind the watch, which brings the czxid of the node
			expect.NoError(t, err)
			if got, err := reader.Token(ctx); got != of || err != nil {
				t.Errorf("token %d, %v; want %d", got, err, of)
			}
			expect.NoError(t, reader.Release(ctx))
			l := expect.Receive(t, "the writer behind", next.got)
			if after, err := l.Token(ctx); after <= of || err != nil {
				t.Errorf("token %d, %v; want more than %d", after, err, of)
			}
			expect.NoError(t, l.Release(ctx))
		})
	}
}

// The writer's node is deleted by hand, at any moment before the listing that would grant the reader's turn. There is no place
// to share then: others may be in already. Beside fails with the loss, and leaves no node.
func TestBesideNodeDeletedByHand(t *testing.T) {
	for name, when := range map[string]func(*zktest.Proxy, *place) *zktest.Fault{
		"before": nil,
		"while the create is under way": func(proxy *zktest.Proxy, p *place) *zktest.Fault {
			return proxy.HoldRequest(zktest.On(zktest.OpCreate, p.dir))
		},
		"while the listing is under way": func(proxy *zktest.Proxy, p *place) *zktest.Fault {
			return proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, p.dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := sharedPlace(t)
			q, proxy := p.proxied()
			first := p.writer(q)
			next := p.wait()
			if when == nil {
				p.delete(first.Path())
			} else {
				_, err := first.Token(expect.Patient(t))
				expect.NoError(t, err)
				fault := when(proxy, p)
				go func() {
					defer fault.Release()
					<-fault.Hit()
					if err := p.admin.Delete(first.Path(), -1); err != nil {
						t.Error(err)
					}
				}()
			}
			turn, _, err := beside(expect.Patient(t), first)
			expect.Match(t, "Beside", err, session.ErrLost)
			if turn != nil {
				t.Error("a turn")
			}
			expect.Match(t, "the write lock", first.Err(), session.ErrLost)
			p.waitNodes(queue.PrefixRead, 0)
			next.goes()
		})
	}
}

// The writer's lease is released while Beside is under way, and its node is gone before the listing. Beside says so, and
// leaves no node.
func TestBesideReleased(t *testing.T) {
	p := sharedPlace(t)
	q, proxy := p.proxied()
	first := p.writer(q)
	_, err := first.Token(expect.Patient(t))
	expect.NoError(t, err)
	next := p.wait()
	list := proxy.HoldRequest(zktest.On(zktest.OpGetChildren2, p.dir))
	defer list.Release()
	released := make(chan error, 1)
	go func() {
		defer list.Release()
		<-list.Hit()
		r := first.StartRelease(context.Background(), true) // its delete is held up behind the listing
		p.delete(first.Path())
		go func() { released <- r.Wait(context.Background()) }()
	}()
	_, _, err = beside(expect.Patient(t), first)
	expect.Match(t, "Beside", err, queue.ErrReleased)
	expect.NoError(t, expect.Receive(t, "the release", released))
	next.goes()
	p.waitNodes(queue.PrefixRead, 0)

	_, _, err = beside(expect.Patient(t), first)
	expect.Match(t, "Beside of a released lease", err, queue.ErrReleased)
	ctx, cancel := context.WithCancel(expect.Patient(t))
	cancel()
	second := p.writer(q)
	_, _, err = beside(ctx, second)
	expect.Match(t, "Beside with an ended context", err, context.Canceled)
	expect.NoError(t, second.Release(expect.Patient(t)))
	p.waitNodes(queue.PrefixRead, 0)
}

// A turn that was handed over lasts, but the former holder cannot take another beside it: a reader would hold together with
// the next writer. And once a holder has begun to, the turn is not handed over any more.
func TestBesideHandedOver(t *testing.T) {
	p := sharedPlace(t)
	ctx := expect.Patient(t)
	r := writing
	r.Prefix, r.Weight, r.Shared = queue.PrefixWrite, 1, true
	turn, _, err := p.queue().Begin(ctx, &r, queue.Waits)
	expect.NoError(t, err)
	handOver := func(context.Context, bool) *session.Removal { return nil }
	first := turn.Lease(ctx, handOver)
	expect.NoError(t, first.Release(ctx))
	next := turn.Lease(ctx, nil)
	if _, _, err := beside(ctx, first); !errors.Is(err, queue.ErrReleased) {
		t.Errorf("beside a turn that another has: %v", err)
	}
	if next.Err() != nil || len(p.nodes(queue.PrefixRead)) > 0 {
		t.Errorf("held: %v; %v", next.Err(), p.nodes(queue.PrefixRead))
	}
	if !turn.IsLast() {
		t.Error("the turn may be handed over")
	}
	expect.NoError(t, next.Release(ctx))
}

// A node that no client of ours makes is ahead of a writer that holds, so that its reader has to wait. Meanwhile the writer's node
// is deleted by hand. What ends the wait is an event, and an event does not show both nodes: the reader is not let in.
func TestBesideIsGrantedByAListing(t *testing.T) {
	onServers(t, func(p *place) {
		p.delete(p.forge(curator(queue.PrefixWrite))) // the next number is 1
		watches := make(chan struct{}, 10)
		q := p.queue(session.WithTrace(session.Trace{
			Watch: func(ctx context.Context, i session.WatchInfo) (context.Context, func(error)) {
				return ctx, testserver.WhenKnown(i, func() { watches <- struct{}{} })
			},
		}))
		first := p.writer(q)
		strange := p.forge(curator(queue.PrefixWrite) + "0000000000")
		got := make(chan error, 1)
		ctx := expect.Patient(p)
		go func() {
			_, _, err := beside(ctx, first)
			got <- err
		}()
		expect.Receive(p, "the reader to watch", watches)
		p.delete(first.Path())
		p.delete(strange)
		expect.Match(p, "Beside", expect.Receive(p, "Beside", got), session.ErrLost)
		p.waitNodes(queue.PrefixRead, 0)
	})
}
