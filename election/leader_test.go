package election_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Leader and Contenders show the candidates by their ids, to other processes too.
func TestLeader(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	observer := newElection(t, connect(t), dir)
	_, err := observer.Leader(ctx)
	wantErr(t, "Leader of an election that nobody has run", err, election.ErrNoLeader)
	_, err = observer.Contenders(ctx)
	wantErr(t, "its Contenders", err, zk.ErrNoNode)

	ids := []string{"a", `{"host":"b","port":8080}`, "ü c"}
	all := line(t, dir, ids...)
	term := all[0].leads(t)
	leader, err := observer.Leader(ctx)
	must(t, err)
	s := testserver.Session(t, all[0].Manager())
	if leader.ID != "a" || !leader.Holder || leader.Token != term.number || leader.Session != s.ID() {
		t.Errorf("leader: %+v", leader)
	}
	contenders, err := observer.Contenders(ctx)
	must(t, err)
	for i, c := range contenders {
		if c.ID != ids[i] || string(c.Data) != ids[i] || c.Holder != (i == 0) {
			t.Errorf("contender %d: %+v", i, c)
		}
	}
	for _, c := range all {
		c.stop()
	}
	testserver.WaitChildren(t, dir, 0)
	_, err = observer.Leader(ctx)
	wantErr(t, "Leader when all have left", err, election.ErrNoLeader)
}

// By default the id is that of the process, as the locks have it.
func TestDefaultID(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	e := newElection(t, connect(t), testserver.Path(t))
	err = e.Run(patient(t), func(ctx context.Context) error {
		leader, err := e.Leader(ctx)
		must(t, err)
		if want := fmt.Sprintf("%s/%d", host, os.Getpid()); leader.ID != want || string(leader.Data) != want {
			t.Errorf("id %q, data %q, want %q", leader.ID, leader.Data, want)
		}
		return errWork
	})
	wantErr(t, "Run", err, errWork)
}

// The names of nodes tell an election from a mutex, which it excludes all the same.
func TestNodeNames(t *testing.T) {
	m, dir := connect(t), testserver.Path(t)
	c := campaign(t, m, dir, "a")
	c.leads(t)
	names := testserver.Children(t, dir)
	if len(names) != 1 || !strings.Contains(names[0], "-elect-lock-") {
		t.Fatalf("nodes: %v", names)
	}
	if n, ok := queue.ParseNode(names[0]); !ok || n.Prefix != queue.PrefixLock {
		t.Errorf("for clients that know nothing of elections it is %+v", n)
	}
	mutex, err := zklock.New(m, dir)
	must(t, err)
	if ok, err := mutex.TryLock(patient(t)); ok || err != nil {
		t.Errorf("a mutex beside the leader: %v, %v", ok, err)
	}
}

// States before 0.1.0 put a rank in the names of candidates. It is ignored: they lead in the order in which they came.
func TestRankedNames(t *testing.T) {
	for name, opts := range map[string][]election.Option{"lock": nil, "latch": {election.WithLeaderLatch()}} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := patient(t), testserver.Path(t)
			first := campaign(t, connect(t), dir, "first", opts...)
			first.leads(t)
			s := testserver.Session(t, connect(t))
			old := enter(t, s, dir, "rank7-elect-"+name+"-", "old")
			last := campaign(t, connect(t), dir, "last", opts...)
			testserver.WaitChildren(t, dir, 3)

			all, err := first.Contenders(ctx)
			must(t, err)
			var ids []string
			for _, c := range all {
				ids = append(ids, c.ID)
			}
			if !slices.Equal(ids, []string{"first", "old", "last"}) {
				t.Errorf("candidates: %q", ids)
			}
			first.stop()
			testserver.WaitChildren(t, dir, 2)
			leader, err := last.Leader(ctx)
			must(t, err)
			if leader.ID != "old" || leader.Path != old.Path || last.IsLeader() {
				t.Errorf("leader: %+v; the one behind it leads: %v", leader, last.IsLeader())
			}
			old.Remove(ctx)
			last.leads(t)
		})
	}
}

// Candidates with and without WithLeaderLatch do not elect two leaders beside each other.
func TestConflict(t *testing.T) {
	dir := testserver.Path(t)
	c := campaign(t, connect(t), dir, "a", election.WithLeaderLatch())
	c.leads(t)
	if names := testserver.Children(t, dir); len(names) != 1 || !strings.Contains(names[0], "-elect-latch-") {
		t.Errorf("nodes: %v", names)
	}
	e := newElection(t, connect(t), dir)
	err := e.Run(patient(t), func(context.Context) error { return nil })
	wantErr(t, "Run", err, queue.ErrConflict)
	if !strings.Contains(err.Error(), ": an election lock finds ") {
		t.Error(err)
	}
	_, err = e.Leader(patient(t))
	wantErr(t, "Leader", err, queue.ErrConflict)
	for _, err := range e.Observe(patient(t)) {
		wantErr(t, "Observe", err, queue.ErrConflict)
	}
	testserver.WaitChildren(t, dir, 1)
}

// New returns an error for bad input, before any I/O.
func TestInput(t *testing.T) {
	tests := []struct {
		name string
		path string
		opts []election.Option
		ok   bool
	}{
		{name: "root", path: "/"},
		{name: "no id", path: "/e", opts: []election.Option{election.WithID("")}},
		{name: "id that is no text", path: "/e", opts: []election.Option{election.WithID("\xff")}},
		{name: "long id", path: "/e", opts: []election.Option{election.WithID(strings.Repeat("a", 64<<10+1))}},
		{name: "id that asks to resign", path: "/e", opts: []election.Option{election.WithID(queue.RevokeMessage)}},
		{name: "no function", path: "/e", opts: []election.Option{election.WithTermEnd(nil)}},
		{name: "plain", path: "/e", ok: true},
		{name: "all options", path: "/e", ok: true, opts: []election.Option{
			election.WithID("a"), election.WithName("scheduler"), election.WithLeaderLatch(), election.WithTermEnd(func(err error) error { return err }),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := election.New(new(session.Manager), tt.path, tt.opts...)
			if tt.ok {
				must(t, err)
				if e.Path() != tt.path {
					t.Errorf("path %q", e.Path())
				}
				return
			}
			wantErr(t, "New", err, session.ErrInvalid)
			if e != nil {
				t.Error("an Election beside an error")
			}
			if err != nil && !strings.HasPrefix(err.Error(), "election: ") {
				t.Errorf("error %q", err)
			}
		})
	}
	_, err := election.New(nil, "/e")
	wantErr(t, "New of a nil manager", err, session.ErrInvalid)
}
