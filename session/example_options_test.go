package session_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// serveExample starts a server in this process. A program has the addresses of its servers instead.
func serveExample() (servers string, stop func()) {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	return server.ConnectString(), func() { _ = server.Close() }
}

// quietExample keeps the library's log out of the output of an example.
func quietExample() session.Option {
	return session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// A program reads a node again whenever it has changed. A watch fires once, so each round sets the next one, together
// with the read: no change is missed in between.
func ExampleSession_Watch() {
	ctx := context.Background()
	servers, stop := serveExample()
	defer stop()
	m, err := session.Connect(ctx, servers, quietExample())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Create(ctx, "/greeting", []byte("hello"), session.Persistent); err != nil {
		log.Fatal(err)
	}
	for {
		data, _, watch, err := s.Watch(ctx, "/greeting")
		if errors.Is(err, zk.ErrNoNode) {
			fmt.Println("it is gone")
			return
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("it says %s\n", data)
		change(ctx, s, string(data)) // as another process might

		select {
		case <-watch.Done(): // it was changed or deleted, or the connection was lost: read it again
		case <-ctx.Done():
			return
		}
	}
	// Output:
	// it says hello
	// it says goodbye
	// it is gone
}

func change(ctx context.Context, s *session.Session, data string) {
	var err error
	if data == "hello" {
		_, err = s.Set(ctx, "/greeting", []byte("goodbye"), -1)
	} else {
		err = s.Delete(ctx, "/greeting", -1)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A Trace is for metrics and traces of one's own. Package otelzk has those of OpenTelemetry.
func ExampleTrace() {
	ctx := context.Background()
	servers, stop := serveExample()
	defer stop()
	trace := session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			// begin := time.Now()
			return ctx, func(r session.AcquireResult) {
				fmt.Printf("acquired the %s %s, error: %v\n", a.Kind, a.Path, r.Err) // time.Since(begin)
			}
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) {
			return func(cause error) { fmt.Printf("held %s, lost: %v\n", h.Path, cause != nil) }
		},
	}
	m, err := session.Connect(ctx, servers, session.WithTrace(trace), quietExample())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(context.Context) error {
		fmt.Println("at work")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// acquired the mutex /locks/invoice-42, error: <nil>
	// at work
	// held /locks/invoice-42, lost: false
}

// WithAuth presents a user and a password to the servers, and WithACL gives the nodes that a program makes to that user
// alone. Use WithTLS too: otherwise the password crosses the network in the clear.
func ExampleWithAuth() {
	ctx := context.Background()
	servers, stop := serveExample()
	defer stop()
	lock := func(opts ...session.Option) error {
		m, err := session.Connect(ctx, servers, append(opts, quietExample())...)
		if err != nil {
			return err
		}
		defer m.Close()
		mutex, err := zklock.New(m, "/locks/invoice-42")
		if err != nil {
			return err
		}
		return mutex.Do(ctx, func(ctx context.Context) error { return ctx.Err() })
	}
	password := []byte("shop:secret")
	err := lock(session.WithAuth("digest", password), session.WithACL(zk.AuthACL(zk.PermAll)...))
	fmt.Println("with the password:", err)
	err = lock()
	fmt.Println("without it, refused:", errors.Is(err, zk.ErrNoAuth))
	// Output:
	// with the password: <nil>
	// without it, refused: true
}

// The servers have certificates of an authority of one's own, and know clients by theirs.
func ExampleWithTLS() {
	authority, err := os.ReadFile("/etc/zookeeper/ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		log.Fatal("ca.pem has no certificate")
	}
	own, err := tls.LoadX509KeyPair("/etc/shop/cert.pem", "/etc/shop/key.pem")
	if err != nil {
		log.Fatal(err)
	}
	m, err := session.Connect(context.Background(), "zk1:2281,zk2:2281,zk3:2281", // secureClientPort
		session.WithTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}
