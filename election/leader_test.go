package election_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Leader and Contenders show the candidates by their ids, to other processes too. The default id is that of the process, as
// the locks have it.
func TestLeader(t *testing.T) {
	inBubble(t, func(t *world) {
		observer := t.election()
		noLeader := func(when string) {
			_, err := observer.Leader(t.Context())
			wantErr(t, "Leader "+when, err, election.ErrNoLeader)
		}
		noLeader("of an election that nobody has run")
		_, err := observer.Contenders(t.Context())
		wantErr(t, "its Contenders", err, zk.ErrNoNode)

		host, err := os.Hostname()
		must(t, err)
		ids := []string{fmt.Sprintf("%s/%d", host, os.Getpid()), `{"host":"b","port":8080}`, "ü c"}
		first := t.election()
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = first.Run(ctx, rests) }()
		pass(soon)
		second, third := t.campaign(ids[1]), t.campaign(ids[2])
		wantIDs(t, observer, ids...)
		stop()
		term, err := election.Term(second.leads(t))
		must(t, err)
		leader, err := observer.Leader(t.Context())
		must(t, err)
		if s := testserver.Session(t, second.Manager()); leader.ID != ids[1] || !leader.Holder || leader.Token != term || leader.Session != s.ID() {
			t.Errorf("leader: %+v", leader)
		}
		second.stop()
		third.stop()
		pass(soon)
		noLeader("when all have left")
	})
}

// Candidates with and without WithLeaderLatch do not elect two leaders beside each other. The names of nodes tell an
// election from a mutex, which it excludes all the same. States before 0.1.0 put a rank in them, which is ignored:
// candidates lead in the order in which they came.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, prefix string
		own, other   []election.Option
	}{
		{"lock", queue.PrefixLock, nil, []election.Option{election.WithLeaderLatch()}},
		{"latch", queue.PrefixLatch, []election.Option{election.WithLeaderLatch()}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *world) {
				first := t.campaign("first", c.own...)
				s := t.session()
				names, _, err := s.Children(t.Context(), dir)
				must(t, err)
				if n, ok := queue.ParseNode(names[0], c.prefix); !ok || !strings.Contains(names[0], "-elect-"+c.prefix) || n.Prefix != c.prefix {
					t.Errorf("nodes %q; for clients that know nothing of elections it is %+v", names, n)
				}
				mutex, err := zklock.New(t.connect(), dir)
				must(t, err)
				if ok, err := mutex.TryLock(t.Context()); ok || c.own == nil && err != nil {
					t.Errorf("a mutex beside the leader: %v, %v", ok, err)
				}

				e := t.election(c.other...)
				err = e.Run(t.Context(), rests)
				if wantErr(t, "Run", err, queue.ErrConflict); err != nil && !strings.Contains(err.Error(), ": an election lock finds ") {
					t.Error(err)
				}
				_, err = e.Leader(t.Context())
				wantErr(t, "Leader", err, queue.ErrConflict)
				for _, err := range e.Observe(t.Context()) {
					wantErr(t, "Observe", err, queue.ErrConflict)
				}

				old := t.enter(s, "rank7-elect-"+c.prefix, "old")
				last := t.campaign("last", c.own...)
				wantIDs(t, first.Election, "first", "old", "last")
				first.stop()
				pass(soon)
				leader, err := last.Leader(t.Context())
				must(t, err)
				if leader.ID != "old" || leader.Path != old.Path || last.IsLeader() {
					t.Errorf("leader: %+v; the one behind it leads: %v", leader, last.IsLeader())
				}
				old.Remove(t.Context())
				last.leads(t)
			})
		})
	}
}

// New returns an error for bad input, before any I/O.
func TestInput(t *testing.T) {
	for name, opt := range map[string]election.Option{
		"no id":                  election.WithID(""),
		"id that is no text":     election.WithID("\xff"),
		"long id":                election.WithID(strings.Repeat("a", 64<<10+1)),
		"id that asks to resign": election.WithID(queue.RevokeMessage),
		"no name":                election.WithName(""),
		"no function":            election.WithTermEnd(nil),
		"a nil option":           nil,
	} {
		e, err := election.New(new(session.Manager), "/e", opt)
		wantErr(t, name, err, session.ErrInvalid)
		if e != nil || err == nil || !strings.HasPrefix(err.Error(), "election: ") {
			t.Errorf("%s: %v and the error %v", name, e, err)
		}
	}
	_, err := election.New(new(session.Manager), "/")
	wantErr(t, "the root", err, session.ErrInvalid)
	e, err := election.New(new(session.Manager), "/e", election.WithID("a"), election.WithName("scheduler"),
		election.WithLeaderLatch(), election.WithTermEnd(func(err error) error { return err }))
	must(t, err)
	if e.Path() != "/e" {
		t.Errorf("path %q", e.Path())
	}
}

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	inBubble(t, func(t *world) {
		misusetest.Check(t.T, misusetest.Package{
			Name:    "election",
			Objects: []misusetest.Object{{Zero: &election.Election{}, Made: t.election()}},
			Funcs:   map[string]func(context.Context){"Term": func(ctx context.Context) { _, _ = election.Term(ctx) }},
		})
	})
}
