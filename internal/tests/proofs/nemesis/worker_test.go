//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// workerEnv has the settings of a worker, in the processes that are workers.
const workerEnv = "TURNSTILE_NEMESIS_WORKER"

// acquires takes a lock, for as long as ctx allows if the lock knows how.
type acquires func(ctx context.Context) (*hold, error)

// hold is one acquisition.
type hold struct {
	claim
	held      func() bool                              // asked of nobody else: what the worker believes
	token     func(ctx context.Context) (int64, error) // nil: it is not known
	release   func(ctx context.Context) error
	downgrade func() error // the hold goes on as a read lock; nil: it cannot
}

// settings are what a worker is told when it begins.
type settings struct {
	Servers      string
	Paths        []string // of the locks
	Worker, Life int
	Seed         uint64
	Timeout      time.Duration // of the session
}

// worker takes the locks again and again, with one session. Its process is told on its standard input to work and to
// rest, and that it is under attack. It ends at the end of that. It begins at rest.
type worker struct {
	settings
	m      *session.Manager
	attack atomic.Bool // so keep locks for long
	turns  atomic.Int64
	hands  []*hand
	busy   sync.WaitGroup  // hands that work
	end    context.Context // ends when the worker is to end
}

// hand is a goroutine of a worker. It contends for one lock.
type hand struct {
	*worker
	name    string // of the lock
	draw    draws
	index   int // of the contenders of this worker
	random  *rand.Rand
	think   time.Duration // at most, between two turns
	spree   bool          // it thinks after one of sixteen turns only
	turn    int
	periods chan context.Context // it works until each of these ends
}

func workerMain(text string) error {
	end, stop := context.WithCancel(context.Background())
	defer stop()
	w := &worker{end: end}
	err := json.Unmarshal([]byte(text), &w.settings)
	if err == nil {
		err = w.connect()
	}
	if err == nil {
		err = w.sit()
	}
	if err != nil {
		return err
	}
	go w.tellLate()
	w.follow()
	stop()
	done := make(chan struct{})
	go func() { w.busy.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.Timeout): // it may wait for a lock whose calls cannot be cancelled
	}
	_ = w.m.Close()
	return nil
}

// sit starts the hands.
func (w *worker) sit() error {
	for n, lock := range w.Paths {
		name := path.Base(lock)
		some, err := chosen(name)
		if err != nil {
			return err
		}
		draw, err := some[0].open(w, lock)
		if err != nil {
			return err
		}
		for i := range some[0].hands {
			h := &hand{
				worker: w, name: name, draw: draw, index: i, periods: make(chan context.Context, 1),
				random: rand.New(rand.NewPCG(w.Seed, uint64(w.Worker)<<48|uint64(n)<<40|uint64(i)<<32|uint64(w.Life))),
				think:  time.Duration(len(w.Paths)-1) * 25 * time.Millisecond, // for the others, which the machine has to serve too
			}
			if name == keptName || name == keptRWName {
				// For places to be used again, and to be kept for too long.
				h.think, h.spree = w.Timeout, true
			}
			w.hands = append(w.hands, h)
			go h.run()
		}
	}
	return nil
}

// follow follows the orders on the standard input, to its end.
func (w *worker) follow() {
	rest := func() {}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch order := in.Text(); order {
		case "work":
			var works context.Context
			works, rest = context.WithCancel(context.Background())
			for _, h := range w.hands {
				w.busy.Add(1)
				h.periods <- works
			}
		case "rest":
			rest()
			go w.tellRest()
		case "attack", "calm":
			w.attack.Store(order == "attack")
		}
	}
	rest()
}

// tellRest tells what this process has in use once all hands rest.
func (w *worker) tellRest() {
	w.busy.Wait()
	runtime.GC()
	runtime.GC() // for what the first has only finalized
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	files, _ := os.ReadDir("/proc/self/fd")
	w.say(event{What: eventRest, Counts: &counts{runtime.NumGoroutine(), len(files), int(memory.HeapAlloc)}})
}

// tellLate writes down when goroutines of this process run late: then its heartbeats were late too.
func (w *worker) tellLate() {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := now(); w.end.Err() == nil; last = now() {
		pause(w.end, every)
		if at := now(); time.Duration(at-last) > every+notable {
			w.say(event{What: eventLate, From: last + int64(every), To: at})
		}
	}
}

// say tells the desk of an event, on the standard output.
func (w *worker) say(e event) {
	e.Worker, e.Life = w.Worker, w.Life
	line, err := json.Marshal(e)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil { // a finding
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *hand) run() {
	for works := range w.periods {
		for works.Err() == nil {
			w.take(works)
			if w.think > 0 && (!w.spree || w.random.IntN(16) == 0) {
				pause(works, time.Duration(w.random.Int64N(int64(w.think))))
			}
		}
		w.busy.Done()
	}
}

// patience draws how long to wait for the lock: often long enough, sometimes hardly at all.
func (w *hand) patience() time.Duration {
	if w.random.IntN(8) == 0 {
		return time.Duration(w.random.Int64N(int64(20 * time.Millisecond)))
	}
	return w.Timeout/2 + time.Duration(w.random.Int64N(int64(4*w.Timeout)))
}

// take is one turn. What happens to the lock is written down.
func (w *hand) take(rest context.Context) {
	w.turn = int(w.turns.Add(1))
	ctx, cancel := context.WithTimeout(rest, w.patience())
	defer cancel()
	from := now()
	h, err := w.draw(w.random)(ctx)
	if err != nil {
		w.note(event{What: eventMissed, From: from, Error: err.Error()})
		return
	}
	w.note(event{What: eventGot, From: from, claim: h.claim})
	w.work(h)
	from = now()
	ctx, cancel = context.WithTimeout(context.Background(), 2*w.Timeout)
	defer cancel()
	err = h.release(ctx)
	w.note(event{What: eventFree, From: from, Error: text(err)})
}

// work is the work under the lock. It stops when the lock is lost.
func (w *hand) work(h *hold) {
	if !w.look(h) {
		return
	}
	if h.token != nil {
		ctx, cancel := context.WithTimeout(context.Background(), w.Timeout)
		defer cancel()
		from := now()
		token, err := h.token(ctx)
		w.note(event{What: eventToken, From: from, Token: token, Error: text(err)})
	}
	if !w.look(h) || !w.nap(h) || !w.look(h) || !w.nap(h) {
		return
	}
	if h.downgrade != nil && w.look(h) { // and goes on as a reader
		from := now()
		err := h.downgrade()
		w.note(event{What: eventDown, From: from, Error: text(err), claim: h.claim})
		if !w.look(h) || !w.nap(h) {
			return
		}
	}
	w.look(h)
}

// nap is work. It takes up to 10 ms, and now and then as long as the attack, up to three timeouts, so
// that strikes meet a holder. Such a long nap either looks all the time or, like a busy program,
// does not look at all. It reports whether to go on.
func (w *hand) nap(h *hold) bool {
	pause(w.end, time.Duration(w.random.Int64N(int64(10*time.Millisecond))))
	if w.random.IntN(50) != 0 {
		return true
	}
	looks := w.random.IntN(2) == 0
	for end := now() + int64(3*w.Timeout); now() < end && w.attack.Load(); {
		if looks && !w.look(h) {
			return false
		}
		w.note(event{What: eventLong})
		pause(w.end, 20*time.Millisecond)
	}
	return true
}

// note completes an event whose call has just returned.
func (w *hand) note(e event) {
	e.Lock, e.Hand, e.Turn, e.To = w.name, w.index, w.turn, now()
	w.say(e)
}

func (w *hand) look(h *hold) bool {
	from := now()
	held := h.held()
	w.note(event{What: eventLook, From: from, Held: held, claim: h.claim})
	return held
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
