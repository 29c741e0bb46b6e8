package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// A process has one manager per ensemble, and closes it at its end.
func ExampleConnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// All paths are below /my/app. Locks, Session.Create and Session.Enter make that node if it is missing.
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/my/app", session.WithTimeout(15*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	node, err := s.Enter(ctx, session.NewNode{Dir: "/", Name: "hello", Fixed: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(node.Path, "is there for", s.Remaining(), "and as long as the servers answer")
}

// A service starts without ZooKeeper. It reports that it is not ready, and does the rest of its
// work, until there is a session.
func ExampleOpen() {
	m, err := session.Open("zk1:2181,zk2:2181,zk3:2181") // fails only for bad input
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	http.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if now := m.Status(); now.State != session.Connected {
			log.Print("no connection to zookeeper: ", now.Failure) // it names servers, so clients do not get it
			http.Error(w, "zookeeper session: "+now.State.String(), http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/job", func(w http.ResponseWriter, r *http.Request) {
		s, err := m.Session(r.Context()) // waits for a session until the request ends
		if err != nil {
			log.Print("job: ", err) // it names servers, so clients do not get it
			http.Error(w, "no session, try again", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "in session", s.ID())
	})
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}

// A program learns when its session is in danger, and when it is lost.
func ExampleManager_Subscribe() {
	m, err := session.Connect(context.Background(), "localhost:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	cancel := m.Subscribe(func(c session.Change) {
		switch c.To {
		case session.Suspended:
			log.Print("locks are still held, but there is no connection: ", c.Err)
		case session.Lost:
			log.Printf("session %x is lost, and its locks with it: %v", c.Session, c.Err)
		}
	})
	defer cancel()
}

// A page shows whether this process can reach the servers, and for how long its locks are certain if it cannot.
func ExampleManager_Status() {
	m, err := session.Open("zk1:2181,zk2:2181,zk3:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	now := m.Status()
	fmt.Println(now.State, now.Server, now.Failure)
	if now.Session != nil {
		fmt.Println("locks are certain for", now.Session.Remaining())
	}
}

// A package that is given a manager logs the losses of all locks.
func ExampleManager_AddTrace() {
	m, err := session.Open("zk1:2181,zk2:2181,zk3:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	m.AddTrace(session.Trace{Loss: func(_ context.Context, h session.HoldInfo, cause error) {
		log.Printf("%s %s (%s) is lost: %v", h.Kind, h.Path, h.Label, cause)
	}})
}

// If the reply to a write is lost, the node says whether the write was carried out.
func ExampleSession_Set() {
	ctx := context.Background()
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, before, err := s.Get(ctx, "/settings")
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Set(ctx, "/settings", []byte("dark"), before.Version)
	if errors.Is(err, session.ErrUncertain) {
		var data []byte
		if data, _, err = s.Get(ctx, "/settings"); err == nil && string(data) != "dark" {
			err = errors.New("not set, or set by somebody else since")
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A client far away waits for a second at most before it tries again, and draws each wait, so that clients spread.
func ExampleWithBackoff() {
	m, err := session.Connect(context.Background(), "localhost:2181",
		session.WithBackoff(100*time.Millisecond, time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}

// Package zk is github.com/go-zookeeper/zk. Only clients that know the password can use the locks whose
// directories this program creates.
func ExampleWithACL() {
	m, err := session.Connect(context.Background(), "localhost:2181",
		session.WithAuth("digest", []byte("shop:secret")),
		session.WithACL(zk.DigestACL(zk.PermAll, "shop", "secret")...))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}
