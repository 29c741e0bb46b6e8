//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// workerEnv is set in processes that are workers, to the name of their contestant.
const workerEnv = "TURNSTILE_NEMESIS_WORKER"

// clients are the contestants that workers in Go can be.
var clients = map[string]func(s *settings) (client, error){
	"turnstile": newOurs,
	"zk":        newZK,
}

// client is a worker's connection to the servers.
type client interface {
	// contenders returns the contenders of a worker for one lock. One goroutine uses each.
	contenders(p place) ([]contender, error)
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

	book *book
	turn int
}

// book is a lock's journal in one process.
type book struct {
	*journal
	turns atomic.Int64
}

func (b *book) turn() int { return int(b.turns.Add(1)) }

// worker takes the locks again and again. Its process is told on its standard input to rest,
// and ends at the end of that.
type worker struct {
	*settings
	client client
	books  map[string]*book
	hands  []*hand
	end    context.Context // ends when the worker is to end
}

// hand is a goroutine of a worker. It contends for one lock.
type hand struct {
	*worker
	lock     contender
	seat     int
	book     *book
	register *registerClient
	random   *rand.Rand
	think    time.Duration // at most, between two turns
	spree    bool          // it thinks after one of sixteen turns only
	steady   bool          // it waits for long enough always
	lone     bool          // it takes the lock when all others rest
	lingers  bool          // one of eight naps takes longer, for up to half a timeout
	turn     int
	parts    []part // of the hold, if it consists of several locks
}

func workerMain(name string, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	rest, end := orders()
	w := &worker{settings: s, books: make(map[string]*book), end: end}
	if w.client, err = clients[name](s); err != nil {
		return err
	}
	if err := w.sit(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- w.run(rest) }()
	select {
	case err = <-done: // rests, or has failed
		if err == nil {
			<-end.Done()
		}
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
	places, err := w.places()
	if err != nil {
		return err
	}
	for lock, p := range places {
		j, err := openJournal(p.journal)
		if err != nil {
			return err
		}
		w.books[p.name()] = &book{journal: j}
		contenders, err := w.client.contenders(p)
		if err != nil {
			return err
		}
		for i, c := range contenders {
			w.hands = append(w.hands, &hand{
				worker: w, lock: c, seat: w.settings.worker*len(contenders) + i, book: w.books[p.name()],
				register: &registerClient{addr: p.register},
				random:   rand.New(rand.NewPCG(w.seed, uint64(w.settings.worker)<<48|uint64(lock)<<40|uint64(i)<<32|uint64(w.life))),
				think:    thinks(len(places)),
				// For holds to last while the limit is changed, and another contender comes back.
				lingers: p.name() == semaphoreName,
			})
			_, w.hands[len(w.hands)-1].steady = c.(loner) // for its nodes to go at known times
			if p.name() == keptName || p.name() == keptRWName {
				// For places to be used again, and to be kept for too long.
				last := w.hands[len(w.hands)-1]
				last.think, last.spree = w.timeout, true
			}
		}
	}
	return nil
}

// thinks says how long a hand leaves its lock alone between two turns: not at all if it is
// alone, and for a moment if there are others that the machine has to serve too.
func thinks(locks int) time.Duration { return time.Duration(locks-1) * thinkEach }

const thinkEach = 25 * time.Millisecond

// orders returns contexts that end when the worker is to rest, and to end.
func orders() (rest, end context.Context) {
	rest, doRest := context.WithCancel(context.Background())
	end, doEnd := context.WithCancel(context.Background())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			doRest() // there is only one order
		}
		doRest()
		doEnd()
	}()
	return rest, end
}

func (w *worker) run(rest context.Context) error {
	var all errgroup.Group
	for _, h := range w.hands {
		all.Go(func() error { return h.run(rest) })
	}
	return all.Wait()
}

func (w *hand) run(rest context.Context) error {
	for rest.Err() == nil {
		if err := w.once(rest); err != nil {
			return err
		}
		if w.think > 0 && (!w.spree || w.random.IntN(16) == 0) {
			pause(rest, time.Duration(w.random.Int64N(int64(w.think))))
		}
	}
	if _, err := w.register.ask("rest %d", w.seat); err != nil {
		return err
	}
	return w.alone()
}

// once is one turn, or a change of the limit.
func (w *hand) once(rest context.Context) error {
	w.turn = w.book.turn()
	if r, ok := w.lock.(resizer); ok && w.random.IntN(resizeOneIn) == 0 {
		return w.resize(r)
	}
	return w.take(rest, w.lock.acquire)
}

// resizeOneIn is how many turns of a semaphore there are to a change of its limit.
const resizeOneIn = 4

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
	a, err := w.register.ask("settle %d", w.seat)
	if err != nil || a.no {
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
	w.spend(time.Duration(w.random.Int64N(int64(longest))))
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
		if a, err := w.register.ask("long %d", w.seat); err != nil || a.no {
			break
		}
		w.spend(20 * time.Millisecond)
	}
	return true, nil
}

// spend lets work take its time, which ends early when the worker is to end.
func (w *hand) spend(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.end.Done():
	}
}

// take is one turn. Its errors are of the journal; those of the lock are written down.
func (w *hand) take(rest context.Context, acquire func(context.Context) (hold, error)) error {
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
		return w.miss(from, err)
	}
	w.split(h)
	defer func() { w.parts = nil }()
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

// miss writes down why there is no hold.
func (w *hand) miss(from int64, err error) error {
	e := event{What: eventMissed, From: from, Error: err.Error()}
	var r *refusal
	if errors.As(err, &r) {
		e.Refused, e.claim = &r.how, r.claim
	}
	return w.note(e)
}

// split makes each part of a hold a turn of its own lock.
func (w *hand) split(h hold) {
	c, ok := h.(compound)
	if !ok {
		return
	}
	w.parts = c.parts()
	for i := range w.parts {
		p := &w.parts[i]
		p.book = w.books[p.lock]
		p.turn = p.book.turn()
	}
}

// work is the work under the lock. It stops when the lock is lost.
func (w *hand) work(h hold) error {
	if held, err := w.look(h); !held {
		return err
	}
	if err := w.read(); err != nil {
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
	e.Worker, e.Life, e.Turn, e.Alone, e.To = w.settings.worker, w.life, w.turn, w.lone, now()
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
		e.Turn, e.claim = p.turn, p.claim
		if err := p.book.add(e); err != nil {
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
	if !h.claim().alone() {
		return nil // others may write beside it
	}
	return w.note(event{What: eventMark, From: now(), Token: token})
}

func (w *hand) read() error {
	from := now()
	a, err := w.register.ask("read %d", w.seat)
	return w.note(event{What: eventRead, From: from, Token: a.token, Value: a.value, Error: text(err)})
}

func (w *hand) write(token int64) error {
	value := valueOf(w.settings.worker, w.life, w.turn)
	from := now()
	a, err := w.register.ask("write %d %d %d", w.seat, token, value)
	return w.note(event{What: eventWrite, From: from, Token: token, Value: value, Stale: a.no, Error: text(err)})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var errNoToken = errors.New("no node of this hold is there")
