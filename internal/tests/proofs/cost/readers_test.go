package cost

import (
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/rwlock"
)

// crowd is the cost of readers that come all at once.
type crowd struct {
	share
	readers, sessions int
	entered           float64 // round trips until all are in
}

// behindLists returns the round trips for lists that wait in the session until another one is answered. A reader
// that comes when a list is on its way takes the next one, or the one behind that.
func (c crowd) behindLists() float64 {
	if c.readers > c.sessions {
		return 2
	}
	return 0
}

// crowd has n readers come at one instant, either to a free lock, or behind a writer that then leaves.
func (w *world) crowd(n int, behind bool) crowd {
	w.t.Helper()
	readers := w.readers(n)
	w.warmUp(readers[0])
	leave := func() error { return nil }
	if behind {
		leave = w.writer()
	}
	w.meter.reset()
	var g errgroup.Group
	in, open := make(chan time.Time, n), make(chan struct{})
	began := time.Now()
	for _, take := range readers {
		g.Go(func() error {
			giveBack, err := take(w.t.Context())
			if err != nil {
				return err
			}
			in <- time.Now()
			<-open
			return giveBack()
		})
	}
	if behind {
		time.Sleep(pause)
		began = time.Now()
	}
	if err := leave(); err != nil {
		w.t.Fatal(err)
	}
	var last time.Time
	for range n {
		last = <-in
	}
	time.Sleep(pause)
	close(open)
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(pause)
	return crowd{shareOf(w.meter.read(), n), n, sessionsFor(n), trips(last.Sub(began))}
}

// writer holds the lock until the function that it returns is called.
func (w *world) writer() (leave func() error) {
	w.t.Helper()
	l, err := rwlock.New(w.other(longTimeout), lockPath)
	if err != nil {
		w.t.Fatal(err)
	}
	leave, err = take(l)(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(pause)
	return leave
}
