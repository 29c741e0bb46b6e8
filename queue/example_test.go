package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A tool shows who holds a lock, and who comes next, until the lock is free.
func ExampleQueue_Observe() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	manager, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	q, err := queue.New(manager, "/reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := q.Acquire(ctx, queue.Request{Kind: queue.Mutex(), Data: []byte("web-3")})
	if err != nil {
		log.Fatal(err)
	}
	for first, err := range q.Observe(ctx, queue.Mutex()) {
		if err != nil {
			log.Fatal(err)
		}
		if first.Path == "" {
			fmt.Println("free")
			break
		}
		fmt.Println(first.ID)
		if err := lease.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// web-3
	// free
}

// The names of the nodes tell who holds a lock: here a writer, and then readers.
func ExampleHolders() {
	var nodes []queue.Node
	for _, name := range []string{"__READ__0000000003", "__READ__0000000002", "__WRIT__0000000001"} {
		if n, ok := queue.ParseNode(name); ok {
			nodes = append(nodes, n)
		}
	}
	show := func(nodes []queue.Node) {
		holds, err := queue.Holders(queue.Reader(), nodes, queue.Config{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(holds)
	}
	show(nodes)
	show(nodes[:2]) // the writer has left
	// Output:
	// [false false true]
	// [true true]
}

// A new kind of lock: odd and even workers exclude each other, but any number of workers of
// one parity may hold the lock together, first come, first served. In Curator this takes a
// LockInternalsDriver. Here it takes the contenders' prefixes and a Policy.
func ExamplePolicy() {
	// A node ahead is in the way if it is of the other parity. None of them may remain.
	parity := &queue.Kind{
		Name:     "parity",
		Prefixes: []string{"odd-", "even-"},
		Policy: func(me queue.Node) queue.Policy {
			return queue.Policy{Weight: func(ahead queue.Node) int {
				if ahead.Prefix != me.Prefix {
					return 1
				}
				return 0
			}}
		},
	}
	odd := queue.Request{Kind: parity, Prefix: "odd-"}
	even := queue.Request{Kind: parity, Prefix: "even-"}

	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	q, err := queue.New(m, "/parity")
	if err != nil {
		log.Fatal(err)
	}

	enter := func(worker int, r queue.Request) *queue.Lease {
		l, err := q.Acquire(ctx, r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(worker, "is in")
		return l
	}
	leave := func(worker int, l *queue.Lease) {
		fmt.Println(worker, "leaves")
		if err := l.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	one, three := enter(1, odd), enter(3, odd)

	entered := make(chan *queue.Lease)
	go func() { entered <- enter(2, even) }()
	for queued := 0; queued < 3; { // until 2 stands behind 1 and 3
		all, err := q.Contenders(ctx, parity)
		if err != nil {
			log.Fatal(err)
		}
		queued = len(all)
	}
	_, err = q.TryAcquire(ctx, odd)
	fmt.Println("5 must wait, as 2 came first:", errors.Is(err, queue.ErrBusy))

	leave(1, one)
	leave(3, three)
	two := <-entered
	_, err = q.TryAcquire(ctx, odd)
	fmt.Println("5 must wait, as 2 is in:", errors.Is(err, queue.ErrBusy))

	leave(2, two)
	leave(5, enter(5, odd))

	// Output:
	// 1 is in
	// 3 is in
	// 5 must wait, as 2 came first: true
	// 1 leaves
	// 3 leaves
	// 2 is in
	// 5 must wait, as 2 is in: true
	// 2 leaves
	// 5 is in
	// 5 leaves
}

// A lease is what a holder has. Its Context ends when the lock is lost, and is for the work. Its token and its guard
// keep late writes of a former holder out of stores that compare them. See package fence for databases.
func ExampleLease() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	held, cancel := lease.Context(ctx)
	defer cancel()
	token, err := lease.Token(ctx) // each holder's is higher than those of all holders before
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", held.Err() == nil, "token:", token > 0)

	if err := server.DeleteNode(lease.Path()); err != nil { // an operator breaks the lock
		log.Fatal(err)
	}
	<-held.Done()
	fmt.Println("lost:", errors.Is(context.Cause(held), session.ErrLost))
	if err := lease.Release(ctx); errors.Is(err, session.ErrLost) {
		fmt.Println("others may have held the lock before the work was done")
	}
	// Output:
	// held: true token: true
	// lost: true
	// others may have held the lock before the work was done
}

// A semaphore whose limit is in its directory, so that all processes go by the same one. It is raised while
// the lock is in use.
func ExampleConfiguration() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	manager, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()

	semaphore := queue.Request{Kind: &queue.Kind{
		Name:     "semaphore",
		Prefixes: []string{queue.PrefixLease},
		Configuration: &queue.Configuration{
			Config: []byte("1"), // until somebody sets another limit
			Policy: func(_ queue.Node, c queue.Config) (queue.Policy, error) {
				limit, err := strconv.Atoi(string(c.Data))
				return queue.Policy{Slack: limit - 1}, err
			},
		},
	}}
	q, err := queue.New(manager, "/reports/workers")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Acquire(ctx, semaphore); err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, semaphore)
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))

	// To raise the limit, somebody sets the data. To lower it takes more: see [queue.Configuration].
	s, err := manager.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Set(ctx, q.Path(), []byte("2"), -1); err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, semaphore)
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))

	// Output:
	// busy: true
	// busy: false
}

// A mutex is shared with another library, whose contenders take turns by their sequence numbers too, and have nodes such as
// ticket-0000000007. All libraries at the path must know the prefixes of each other.
func ExampleKind_prefixes() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	kind := queue.Mutex()
	kind.Prefixes = append(kind.Prefixes, "ticket-") // our own nodes have the first prefix
	q, err := queue.New(m, "/tickets")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := q.Acquire(ctx, queue.Request{Kind: kind})
	if err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, queue.Request{Kind: kind, Prefix: "ticket-"}) // as the other library does
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: busy: true
}
