package queue

import (
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// counted is a kind whose limit is the data of the directory.
func counted(limit int) *Kind {
	return &Kind{Name: "counted", Prefixes: []string{PrefixLease}, Configuration: &Configuration{
		Config: []byte(strconv.Itoa(limit)),
		Policy: func(me Node, c Config) (Policy, error) {
			most, err := strconv.Atoi(string(c.Data))
			return LeasePolicy(me, most), err
		},
	}}
}

// A contender that asks for more than there is gets an error, and keeps out nobody: one that comes, one that tries while others are in its
// way, and one that waits when the limit is lowered. The nodes of others that ask for more are no error to anybody.
func TestMoreThanThereIs(t *testing.T) {
	ctx := expect.Patient(t)
	q, err := New(testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t))
	expect.NoError(t, err)
	kind := counted(2)
	one, err := q.Acquire(ctx, Request{Kind: kind})
	expect.NoError(t, err)
	_, err = q.Acquire(ctx, Request{Kind: kind, Weight: 3})
	expect.Match(t, "3 of 2", err, session.ErrInvalid)
	got := make(chan error, 1)
	go func() {
		_, err := q.Acquire(ctx, Request{Kind: kind, Weight: 2})
		got <- err
	}()
	testserver.WaitChildren(t, q.Path(), 2)
	_, err = q.TryAcquire(ctx, Request{Kind: kind, Weight: 3})
	expect.Match(t, "a try for 3 of 2", err, session.ErrInvalid)
	s := testserver.Session(t, q.Manager())
	_, err = s.Set(ctx, q.Path(), []byte("1"), -1)
	expect.NoError(t, err)
	expect.Match(t, "2 of 1", expect.Receive(t, "the end of the waiter", got), session.ErrInvalid)
	_, err = testserver.Admin(t).Create(q.Path()+"/x9-lease-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	expect.NoError(t, err)
	all, err := q.Contenders(ctx, kind)
	expect.NoError(t, err)
	if len(all) != 2 || !all[0].Holder || all[1].Holder {
		t.Errorf("contenders %+v", all)
	}
	expect.NoError(t, one.Release(ctx))
}

// A turn has the configuration that has let it go.
func TestConfigOfTurn(t *testing.T) {
	ctx := expect.Patient(t)
	q, err := New(testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t))
	expect.NoError(t, err)
	r := Request{Kind: counted(1), Prefix: PrefixLease, Weight: 1}
	first, _, err := q.Begin(ctx, &r, Waits)
	expect.NoError(t, err)
	if c := first.Config(); string(c.Data) != "1" || c.Version != 1 {
		t.Errorf("configuration %q, version %d", c.Data, c.Version)
	}
	second := make(chan *Turn, 1)
	go func() {
		again := r
		turn, _, err := q.Begin(ctx, &again, Waits)
		expect.NoError(t, err)
		second <- turn
	}()
	testserver.WaitChildren(t, q.Path(), 2)
	stat, err := first.Session().Set(ctx, q.Path(), []byte("2"), 1)
	expect.NoError(t, err)
	turn := expect.Receive(t, "the second turn", second)
	if c := turn.Config(); string(c.Data) != "2" || c.Version != 2 || c.Changed != stat.Mzxid {
		t.Errorf("configuration %q, version %d", c.Data, c.Version)
	}
	<-turn.Leave(ctx).Done()
	<-first.Leave(ctx).Done()
}
