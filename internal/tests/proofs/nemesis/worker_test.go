//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// workerEnv is set in processes that are workers, to the name of their contestant.
const workerEnv = "TURNSTILE_NEMESIS_WORKER"

// clients are the contestants that workers can be.
var clients = map[string]func(w *worker) (client, error){
	"turnstile": newOurs,
	"zk.Lock":   newZK,
}

// client is a worker's connection to the servers.
type client interface {
	// contenders returns the contenders of a worker for the lock at a path. One goroutine uses each.
	contenders(path string) ([]acquires, error)
	close() error
}

// acquires takes a lock, for as long as ctx allows if the lock knows how.
type acquires func(ctx context.Context) (*hold, error)

// hold is one acquisition.
type hold struct {
	claim
	held      func() bool                              // asked of nobody else: what the worker believes
	token     func(ctx context.Context) (int64, error) // nil: it is not known
	release   func(ctx context.Context) error
	downgrade func() error // the hold goes on as a read lock; nil: it cannot
	parts     []part       // if it is a hold of several locks at once
}

// part is the part of a hold in another lock that is under attack too.
type part struct {
	lock  string // its name
	claim claim
	token int64 // set when the token of the hold is known
	turn  int
}

// settings are what a worker is told when it begins.
type settings struct {
	Servers      string
	Paths        []string // of the locks
	Worker, Life int
	Seed         uint64
	Timeout      time.Duration // of the session
}

// worker takes the locks again and again. Its process is told on its standard input to work and to rest, that it is under
// attack, and to count what it has in use. It ends at the end of that. It begins at rest.
type worker struct {
	settings
	client client
	attack atomic.Bool // so keep locks for long
	turns  atomic.Int64
	hands  []*hand
	first  *period
	end    context.Context // ends when the worker is to end
}

// period is a time in which a worker works, and then rests.
type period struct {
	works context.Context
	rest  context.CancelFunc
	over  chan struct{} // closed when the next one begins, or the worker is to end
	next  *period       // set before over is closed; nil: the worker is to end
}

func newPeriod() *period {
	p := &period{over: make(chan struct{})}
	p.works, p.rest = context.WithCancel(context.Background())
	return p
}

// hand is a goroutine of a worker. It contends for one lock.
type hand struct {
	*worker
	name    string // of the lock
	acquire acquires
	index   int // of the contenders of this worker
	random  *rand.Rand
	think   time.Duration // at most, between two turns
	spree   bool          // it thinks after one of sixteen turns only
	turn    int
	parts   []part // of the hold, if it consists of several locks
}

func workerMain(name string, args []string) error {
	var s settings
	err := json.Unmarshal([]byte(args[0]), &s)
	if err != nil {
		return err
	}
	end, stop := context.WithCancel(context.Background())
	defer stop()
	w := &worker{settings: s, first: newPeriod(), end: end}
	w.first.rest()
	if w.client, err = clients[name](w); err != nil {
		return err
	}
	if err := w.sit(); err != nil {
		return err
	}
	go w.orders(stop)
	go w.tellLate()
	var all sync.WaitGroup
	for _, h := range w.hands {
		all.Go(h.run)
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	<-end.Done()
	select {
	case <-done:
	case <-time.After(s.Timeout): // it may wait for a lock whose calls cannot be cancelled
	}
	return w.client.close()
}

// sit makes the hands.
func (w *worker) sit() error {
	for n, lock := range w.Paths {
		contenders, err := w.client.contenders(lock)
		if err != nil {
			return err
		}
		for i, c := range contenders {
			name := path.Base(lock)
			h := &hand{
				worker: w, name: name, acquire: c, index: i,
				random: rand.New(rand.NewPCG(w.Seed, uint64(w.Worker)<<48|uint64(n)<<40|uint64(i)<<32|uint64(w.Life))),
				think:  thinks(len(w.Paths)),
			}
			if name == keptName || name == keptRWName {
				// For places to be used again, and to be kept for too long.
				h.think, h.spree = w.Timeout, true
			}
			w.hands = append(w.hands, h)
		}
	}
	return nil
}

// thinks says how long a hand leaves its lock alone between two turns: not at all if it is
// alone, and for a moment if there are others that the machine has to serve too.
func thinks(locks int) time.Duration { return time.Duration(locks-1) * 25 * time.Millisecond }

// orders follows the orders on the standard input.
func (w *worker) orders(stop context.CancelFunc) {
	p := w.first
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch order := in.Text(); order {
		case "rest":
			p.rest()
		case "work":
			p.next = newPeriod()
			close(p.over)
			p = p.next
		case "attack", "calm":
			w.attack.Store(order == "attack")
		case "count":
			w.count()
		}
	}
	p.rest()
	stop()
	close(p.over)
}

// count tells what this process has in use.
func (w *worker) count() {
	runtime.GC()
	runtime.GC() // for what the first has only finalized
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	files, _ := os.ReadDir("/proc/self/fd")
	say(event{Worker: w.Worker, Life: w.Life, What: eventCount, Counts: &counts{runtime.NumGoroutine(), len(files), int(memory.HeapAlloc)}})
}

// tellLate writes down when goroutines of this process run late: then its heartbeats were late too.
func (w *worker) tellLate() {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := now(); w.end.Err() == nil; last = now() {
		pause(w.end, every)
		if at := now(); time.Duration(at-last) > every+notable {
			say(event{Worker: w.Worker, Life: w.Life, What: eventLate, From: last + int64(every), To: at})
		}
	}
}

func (w *hand) run() {
	for p := w.first; p != nil; p = p.next {
		for p.works.Err() == nil {
			w.take(p.works)
			if w.think > 0 && (!w.spree || w.random.IntN(16) == 0) {
				pause(p.works, time.Duration(w.random.Int64N(int64(w.think))))
			}
		}
		w.turn = 0
		w.note(event{What: eventRest})
		<-p.over
	}
}

// fatal ends the process, which is a finding.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
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
	h, err := w.acquire(ctx)
	if err != nil {
		w.note(event{What: eventMissed, From: from, Error: err.Error()})
		return
	}
	w.parts = h.parts
	defer func() { w.parts = nil }()
	for i := range w.parts {
		w.parts[i].turn = int(w.turns.Add(1))
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
	e.Lock, e.Hand, e.Worker, e.Life, e.Turn, e.To = w.name, w.index, w.Worker, w.Life, w.turn, now()
	say(e)
	for _, p := range w.parts {
		switch e.What {
		case eventGot, eventLook, eventFree:
		case eventToken:
			e.Token = p.token
		default:
			continue // of the whole alone
		}
		e.Lock, e.Hand, e.Turn, e.claim = p.lock, -1, p.turn, p.claim
		say(e)
	}
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

var errNoToken = errors.New("no node of this hold is there")

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
