package session_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// A process has one manager per ensemble, and closes it at its end.
func ExampleConnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/my/app", session.WithTimeout(15*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	node, err := s.Create(ctx, "/hello", nil, session.Ephemeral)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(node, "is there for", s.Remaining(), "and as long as the servers answer")
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
			log.Print("no connection; locks are still held")
		case session.Lost:
			log.Printf("session %x is lost, and its locks with it: %v", c.Session, c.Err)
		}
	})
	defer cancel()
}
