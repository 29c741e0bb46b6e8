package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// examples returns a manager on a server in this process.
func examples() (m *session.Manager, closeAll func()) {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	m, err = session.Connect(context.Background(), server.ConnectString(), session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	return m, func() {
		_ = m.Close()
		_ = server.Close()
	}
}

func newCandidate(m *session.Manager, opts ...election.Option) *election.Election {
	e, err := election.New(m, "/election/billing", opts...)
	if err != nil {
		log.Fatal(err)
	}
	return e
}

// Follow the leader, to send requests to it.
func ExampleElection_Observe() {
	m, closeAll := examples()
	defer closeAll()
	term, endTerm := context.WithCancel(context.Background())
	defer endTerm()
	candidate := func() { // in another process
		lead := func(ctx context.Context) error { <-ctx.Done(); return nil }
		_ = newCandidate(m, election.WithID("10.0.0.7:8080")).Run(term, lead)
	}

	e := newCandidate(m) // it does not run, so it is no candidate
	for leader, err := range e.Observe(context.Background()) {
		switch {
		case errors.Is(err, election.ErrNoLeader):
			fmt.Println("nobody leads")
			if term.Err() != nil {
				return
			}
			go candidate()
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println("forward to", leader.ID)
			endTerm()
		}
	}
	// Output:
	// nobody leads
	// forward to 10.0.0.7:8080
	// nobody leads
}

// Write to ZooKeeper as the leader. The write happens only while this term lasts.
func ExampleTerm() {
	m, closeAll := examples()
	defer closeAll()
	err := newCandidate(m).Run(context.Background(), func(ctx context.Context) error {
		s, err := m.Session(ctx)
		if err != nil {
			return err
		}
		lease, _ := queue.LeaseFrom(ctx)
		_, err = s.Multi(ctx, lease.Guard(), &zk.CreateRequest{Path: "/state", Data: []byte("billed"), Acl: zk.WorldACL(zk.PermAll)})
		if err != nil {
			return err
		}
		// A store outside of ZooKeeper keeps the term with the data, and refuses a lower one.
		term, err := election.Term(ctx)
		fmt.Println("written in a term:", term > 0)
		return errors.Join(err, errBilled)
	})
	fmt.Println(err)
	// Output:
	// written in a term: true
	// all is billed
}

// End the process when the leadership is lost, and log why each term ends.
func ExampleWithTermEnd() {
	m, closeAll := examples()
	defer closeAll()
	e := newCandidate(m, election.WithTermEnd(func(err error) error {
		switch {
		case err == nil, errors.Is(err, election.ErrResigned):
			fmt.Println("resigned")
			return nil
		case errors.Is(err, session.ErrLost):
			fmt.Println("lost the leadership")
		}
		return err // Run returns it
	}))
	terms := 0
	err := e.Run(context.Background(), func(ctx context.Context) error {
		if terms++; terms == 1 {
			return nil
		}
		leader, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		s, err := m.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, leader.Path, -1); err != nil { // as an operator would
			return err
		}
		<-ctx.Done()
		return nil
	})
	fmt.Println(errors.Is(err, session.ErrLost))
	// Output:
	// resigned
	// lost the leadership
	// true
}
