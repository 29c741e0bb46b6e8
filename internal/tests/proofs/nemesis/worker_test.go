//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// workerEnv is set in processes that are workers, to the name of their contestant.
const workerEnv = "TURNSTILE_NEMESIS_WORKER"

// clients are the contestants that workers in Go can be.
var clients = map[string]func(w *worker) (client, error){
	"turnstile": newOurs,
	"zk":        newZK,
}

// client is a worker's connection to the servers.
type client interface {
	// contenders returns the contenders of a worker for the lock at a path. One goroutine uses each.
	contenders(path string) ([]contender, error)
	close() error
}

// contender is a lock as one goroutine of a worker uses it.
type contender interface {
	// acquire waits for the lock, for as long as ctx allows if the lock knows how.
	acquire(ctx context.Context) (hold, error)
}

// resizer is a contender for a lock whose limit can be changed.
type resizer interface {
	limit() int // draws one
	resize(ctx context.Context, limit int) error
}

// loner is a contender for a lock that can refuse.
type loner interface {
	// sole returns the ways to take the lock, none of which is refused if nobody else has it or wants it.
	sole() []acquires
}

// acquires is a way to take a lock.
type acquires func(context.Context) (hold, error)

// hold is one acquisition.
type hold interface {
	claim() claim
	held() bool // asked of nobody else: what the worker believes
	token(ctx context.Context) (int64, error)
	release(ctx context.Context) error
}

// downgrader is a hold that goes on as a read lock.
type downgrader interface{ downgrade() error }

// compound is a hold of several locks at once.
type compound interface{ parts() []part }

// part is the part of a hold in another lock that is under attack too.
type part struct {
	lock  string // its name
	claim claim
	token *int64 // set when the token of the hold is known
	turn  int
}

// settings are a worker's arguments, in this order, of Go's and of Java's.
type settings struct {
	servers string
	paths   []string // of the locks, with a comma between
	desk    string
	journal string
	worker  int
	life    int
	seed    uint64
	timeout time.Duration // of the session, in milliseconds as an argument
}

func (s *settings) args() []string {
	return []string{
		s.servers, strings.Join(s.paths, ","), s.desk, s.journal, strconv.Itoa(s.worker), strconv.Itoa(s.life),
		strconv.FormatUint(s.seed, 10), strconv.FormatInt(s.timeout.Milliseconds(), 10),
	}
}

func parseSettings(args []string) (s settings, err error) {
	if len(args) != 8 {
		return s, fmt.Errorf("%d arguments, want 8", len(args))
	}
	s = settings{servers: args[0], paths: strings.Split(args[1], ","), desk: args[2], journal: args[3]}
	var millis int
	_, err = fmt.Sscan(strings.Join(args[4:], " "), &s.worker, &s.life, &s.seed, &millis)
	s.timeout = time.Duration(millis) * time.Millisecond
	return s, err
}

// worker takes the locks again and again. Its process is told on its standard input to rest, to work, and to count
// what it has in use. It ends at the end of that. It begins at rest.
type worker struct {
	settings
	client client
	book   *journal
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
	lock    contender
	seat    int
	desk    *deskClient
	random  *rand.Rand
	think   time.Duration // at most, between two turns
	spree   bool          // it thinks after one of sixteen turns only
	steady  bool          // it waits for long enough always
	lingers bool          // one of eight naps takes longer, for up to half a timeout
	lone    bool          // it takes the lock when all others rest
	turn    int
	parts   []part // of the hold, if it consists of several locks
}

func workerMain(name string, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	end, stop := context.WithCancel(context.Background())
	defer stop()
	w := &worker{settings: s, first: newPeriod(), end: end}
	w.first.rest()
	if w.book, err = openJournal(s.journal); err != nil {
		return err
	}
	if w.client, err = clients[name](w); err != nil {
		return err
	}
	if err := w.sit(); err != nil {
		return err
	}
	go w.orders(stop)
	go w.tellLate()
	var all errgroup.Group
	for _, h := range w.hands {
		all.Go(h.run)
	}
	done := make(chan error, 1)
	go func() { done <- all.Wait() }()
	select {
	case err = <-done:
	case <-end.Done():
		// It may wait for a lock whose calls cannot be cancelled.
		select {
		case err = <-done:
		case <-time.After(s.timeout):
		}
	}
	return errors.Join(err, w.client.close())
}

// sit makes the hands.
func (w *worker) sit() error {
	seats := 0
	for n, lock := range w.paths {
		contenders, err := w.client.contenders(lock)
		if err != nil {
			return err
		}
		for i, c := range contenders {
			_, loner := c.(loner)
			name := path.Base(lock)
			h := &hand{
				worker: w, name: name, lock: c, seat: seats + w.settings.worker*len(contenders) + i,
				desk:   &deskClient{addr: w.desk},
				random: rand.New(rand.NewPCG(w.seed, uint64(w.settings.worker)<<48|uint64(n)<<40|uint64(i)<<32|uint64(w.life))),
				think:  thinks(len(w.paths)),
				steady: loner, // for its nodes to go at known times
				// For holds to last while the limit is changed, and another contender comes back.
				lingers: name == semaphoreName,
			}
			if name == keptName || name == keptRWName {
				// For places to be used again, and to be kept for too long.
				h.think, h.spree = w.timeout, true
			}
			w.hands = append(w.hands, h)
		}
		seats += workers * len(contenders)
	}
	return nil
}

// thinks says how long a hand leaves its lock alone between two turns: not at all if it is
// alone, and for a moment if there are others that the machine has to serve too.
func thinks(locks int) time.Duration { return time.Duration(locks-1) * 25 * time.Millisecond }

// orders follows the orders on the standard input.
func (w *worker) orders(stop context.CancelFunc) {
	p, desk := w.first, &deskClient{addr: w.desk}
	_, _ = desk.ask("called 0") // for its connection to count from the beginning
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "rest":
			p.rest()
		case "work":
			p.next = newPeriod()
			close(p.over)
			p = p.next
		case "count":
			runtime.GC()
			runtime.GC() // for what the first has only finalized
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			files, _ := os.ReadDir("/proc/self/fd")
			_, _ = desk.ask("count %d %d %d %d %d", w.worker, w.life, runtime.NumGoroutine(), len(files), memory.HeapAlloc)
		}
	}
	p.rest()
	stop()
	close(p.over)
}

// tellLate writes down when goroutines of this process run late: then its heartbeats were late too.
func (w *worker) tellLate() {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := now(); w.end.Err() == nil; last = now() {
		w.pause(every)
		if at := now(); time.Duration(at-last) > every+notable {
			_ = w.book.add(event{Worker: w.worker, Life: w.life, What: eventLate, From: last + int64(every), To: at})
		}
	}
}

func (w *hand) run() error {
	for p := w.first; p != nil; p = p.next {
		for p.works.Err() == nil {
			if err := w.once(p.works); err != nil {
				return err
			}
			if w.think > 0 && (!w.spree || w.random.IntN(16) == 0) {
				pause(p.works, time.Duration(w.random.Int64N(int64(w.think))))
			}
		}
		if _, err := w.desk.ask("rest %d", w.seat); err != nil {
			return err
		}
		if err := w.alone(p); err != nil {
			return err
		}
		<-p.over
	}
	return nil
}

// alone takes a lock that can refuse when it is called for that. All others rest then.
func (w *hand) alone(p *period) error {
	l, ok := w.lock.(loner)
	for ok {
		select {
		case <-p.over:
			return nil
		case <-time.After(50 * time.Millisecond):
		}
		called, err := w.desk.ask("called %d", w.seat)
		if err != nil {
			return err
		}
		if !called {
			continue
		}
		w.lone = true
		for _, acquire := range l.sole() {
			w.turn = int(w.turns.Add(1))
			if err := w.take(w.end, acquire); err != nil {
				return err
			}
		}
		w.lone = false
		if _, err = w.desk.ask("done %d", w.seat); err != nil {
			return err
		}
	}
	return nil
}

// once is one turn, or a change of the limit, for one turn in four of a semaphore.
func (w *hand) once(rest context.Context) error {
	w.turn = int(w.turns.Add(1))
	if r, ok := w.lock.(resizer); ok && w.random.IntN(4) == 0 {
		return w.resize(r)
	}
	return w.take(rest, w.lock.acquire)
}

// resize changes the limit, and then finds out when the last server has heard of it: until
// then, a server that lags can let a contender in by the former limit.
func (w *hand) resize(r resizer) error {
	limit := r.limit()
	from := now()
	if err := w.note(event{What: eventResizing, From: from, Limit: limit}); err != nil {
		return err
	}
	err := r.resize(w.end, limit)
	if err := w.note(event{What: eventResized, From: from, Limit: limit, Error: text(err)}); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	from = now()
	if yes, err := w.desk.ask("settle %d", w.seat); err != nil || !yes {
		return nil
	}
	return w.note(event{What: eventSettled, From: from, Limit: limit})
}

// patience draws how long to wait for the lock: often long enough, sometimes hardly at all.
func (w *hand) patience() time.Duration {
	if !w.steady && w.random.IntN(8) == 0 {
		return time.Duration(w.random.Int64N(int64(20 * time.Millisecond)))
	}
	return w.timeout/2 + time.Duration(w.random.Int64N(int64(4*w.timeout)))
}

// nap is work. It takes up to 10 ms, and now and then as long as the attack, up to three timeouts, so
// that strikes meet a holder. Such a long nap either looks all the time or, like a busy program,
// does not look at all. It reports whether to go on.
func (w *hand) nap(h hold) (bool, error) {
	longest := 10 * time.Millisecond
	if w.lingers && w.random.IntN(8) == 0 {
		longest = w.timeout / 2
	}
	w.pause(time.Duration(w.random.Int64N(int64(longest))))
	if w.random.IntN(50) != 0 {
		return true, nil
	}
	looks := w.random.IntN(2) == 0
	for end := now() + int64(3*w.timeout); now() < end; {
		if looks {
			if held, err := w.look(h); !held {
				return false, err
			}
		}
		if yes, err := w.desk.ask("long %d", w.seat); err != nil || !yes {
			break
		}
		w.pause(20 * time.Millisecond)
	}
	return true, nil
}

// pause ends early when the worker is to end.
func (w *worker) pause(d time.Duration) { pause(w.end, d) }

// take is one turn. Its errors are of the journal and the desk; those of the lock are written down.
func (w *hand) take(rest context.Context, acquire acquires) error {
	ctx, cancel := context.WithTimeout(rest, w.patience())
	defer cancel()
	from := now()
	if w.steady {
		if err := w.note(event{What: eventAsks, From: from}); err != nil {
			return err
		}
	}
	h, err := acquire(ctx)
	if err != nil {
		missed := event{What: eventMissed, From: from, Error: err.Error()}
		var r *refusal
		if errors.As(err, &r) {
			missed.Refused, missed.claim = &r.how, r.claim
		}
		return w.note(missed)
	}
	if c, ok := h.(compound); ok {
		w.parts = c.parts()
		defer func() { w.parts = nil }()
		for i := range w.parts {
			w.parts[i].turn = int(w.turns.Add(1))
		}
	}
	if err := w.note(event{What: eventGot, From: from, claim: h.claim()}); err != nil {
		return err
	}
	if err := w.work(h); err != nil {
		return err
	}
	from = now()
	ctx, cancel = context.WithTimeout(context.Background(), 2*w.timeout)
	defer cancel()
	return w.note(event{What: eventFree, From: from, Error: text(h.release(ctx))})
}

// work is the work under the lock. It stops when the lock is lost.
func (w *hand) work(h hold) error {
	if held, err := w.look(h); !held {
		return err
	}
	if _, err := w.desk.ask("served %d", w.seat); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	from := now()
	token, err := h.token(ctx)
	if err := w.note(event{What: eventToken, From: from, Token: token, Error: text(err)}); err != nil {
		return err
	}
	if err := w.mark(h, token); err != nil {
		return err
	}
	if goOn, err := w.nap(h); !goOn {
		return err
	}
	if token != 0 && h.claim().alone() {
		if err := w.write(token); err != nil {
			return err
		}
	}
	if held, err := w.look(h); !held {
		return err
	}
	if goOn, err := w.nap(h); !goOn {
		return err
	}
	if err := w.mark(h, token); err != nil {
		return err
	}
	if held, err := w.look(h); !held {
		return err
	}
	return w.downgrade(h)
}

// downgrade goes on as a reader, if the hold is of that kind.
func (w *hand) downgrade(h hold) error {
	d, ok := h.(downgrader)
	if !ok {
		return nil
	}
	from := now()
	err := d.downgrade()
	if err := w.note(event{What: eventDown, From: from, Error: text(err), claim: h.claim()}); err != nil {
		return err
	}
	if held, err := w.look(h); err != nil || !held {
		return err
	}
	if goOn, err := w.nap(h); !goOn {
		return err
	}
	_, err = w.look(h)
	return err
}

// note completes an event whose call has just returned.
func (w *hand) note(e event) error {
	e.Lock, e.Worker, e.Life, e.Turn, e.Alone, e.To = w.name, w.settings.worker, w.life, w.turn, w.lone, now()
	if err := w.book.add(e); err != nil {
		return err
	}
	for _, p := range w.parts {
		switch e.What {
		case eventGot, eventLook, eventFree:
		case eventToken:
			e.Token = *p.token
		default:
			continue // of the whole alone
		}
		e.Lock, e.Turn, e.claim = p.lock, p.turn, p.claim
		if err := w.book.add(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *hand) look(h hold) (bool, error) {
	from := now()
	held := h.held()
	return held, w.note(event{What: eventLook, From: from, Held: held, claim: h.claim()})
}

func (w *hand) mark(h hold, token int64) error {
	if held, err := w.look(h); !held {
		return err
	}
	if h.claim().Weight > 0 {
		return nil // others may write beside it
	}
	return w.note(event{What: eventMark, From: now(), Token: token})
}

func (w *hand) write(token int64) error {
	from := now()
	yes, err := w.desk.ask("write %d %d", w.seat, token)
	return w.note(event{What: eventWrite, From: from, Token: token, Stale: !yes && err == nil, Error: text(err)})
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
