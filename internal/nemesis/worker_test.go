//go:build linux

package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// workerEnv is set in processes that are workers, to the name of their lock.
const workerEnv = "TURNSTILE_NEMESIS_WORKER"

// contender is a lock as a worker uses it.
type contender interface {
	// acquire waits for the lock, for as long as ctx allows if the lock knows how.
	acquire(ctx context.Context) (hold, error)
	close()
}

// hold is one acquisition.
type hold interface {
	held() bool // asked of nobody else: what the worker believes
	token(ctx context.Context) (int64, error)
	release(ctx context.Context) error
}

// locks are those that workers in Go can use.
var locks = map[string]func(s *settings) (contender, error){
	"turnstile": newOurs,
	"zk":        newZK,
}

// settings are a worker's arguments, in this order, of Go's and of Java's.
type settings struct {
	servers  string
	path     string // of the lock
	register string
	journal  string
	worker   int
	life     int
	seed     uint64
	timeout  time.Duration // of the session, in milliseconds as an argument
}

func (s *settings) args() []string {
	return []string{
		s.servers, s.path, s.register, s.journal, strconv.Itoa(s.worker), strconv.Itoa(s.life),
		strconv.FormatUint(s.seed, 10), strconv.FormatInt(s.timeout.Milliseconds(), 10),
	}
}

func parseSettings(args []string) (*settings, error) {
	if len(args) != 8 {
		return nil, fmt.Errorf("%d arguments, want 8", len(args))
	}
	s := &settings{servers: args[0], path: args[1], register: args[2], journal: args[3]}
	var millis int
	_, err := fmt.Sscan(args[4]+" "+args[5]+" "+args[6]+" "+args[7], &s.worker, &s.life, &s.seed, &millis)
	s.timeout = time.Duration(millis) * time.Millisecond
	return s, err
}

// worker takes the lock again and again. Its process is told on its standard input to rest,
// and ends at the end of that.
type worker struct {
	*settings
	lock     contender
	journal  *journal
	register *registerClient
	random   *rand.Rand
	turn     int
	end      context.Context // ends when the worker is to end
}

func workerMain(name string, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	j, err := openJournal(s.journal)
	if err != nil {
		return err
	}
	rest, end := orders()
	lock, err := locks[name](s)
	if err != nil {
		return err
	}
	w := &worker{
		settings: s, lock: lock, journal: j,
		register: &registerClient{addr: s.register},
		random:   rand.New(rand.NewPCG(s.seed, uint64(s.worker)<<32|uint64(s.life))),
		end:      end,
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
	lock.close()
	return err
}

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
	for rest.Err() == nil {
		w.turn++
		if err := w.take(rest); err != nil {
			return err
		}
	}
	_, err := w.register.ask("rest %d", w.worker)
	return err
}

// patience draws how long to wait for the lock: often long enough, sometimes hardly at all.
func (w *worker) patience() time.Duration {
	if w.random.IntN(8) == 0 {
		return time.Duration(w.random.Int64N(int64(20 * time.Millisecond)))
	}
	return w.timeout/2 + time.Duration(w.random.Int64N(int64(4*w.timeout)))
}

// nap is work: for up to 10 ms, and now and then for as long as the attack goes on, up to three
// timeouts, so that what goes wrong goes wrong for a holder. Such a long one looks all the
// time, or else does not, as one that is busy. It reports whether to go on.
func (w *worker) nap(h hold) (bool, error) {
	w.spend(time.Duration(w.random.Int64N(int64(10 * time.Millisecond))))
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
		if a, err := w.register.ask("long %d", w.worker); err != nil || a.no {
			break
		}
		w.spend(20 * time.Millisecond)
	}
	return true, nil
}

// spend lets work take its time, which ends early when the worker is to end.
func (w *worker) spend(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.end.Done():
	}
}

// take is one turn. Its errors are of the journal; those of the lock are written down.
func (w *worker) take(rest context.Context) error {
	ctx, cancel := context.WithTimeout(rest, w.patience())
	defer cancel()
	from := now()
	h, err := w.lock.acquire(ctx)
	if err != nil {
		return w.note(event{What: eventMissed, From: from, Error: err.Error()})
	}
	if err := w.note(event{What: eventGot, From: from}); err != nil {
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

// work is what is done under the lock. It stops when the lock is lost.
func (w *worker) work(h hold) error {
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
	if token != 0 {
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
	_, err = w.look(h)
	return err
}

// note completes an event whose call has just returned.
func (w *worker) note(e event) error {
	e.Worker, e.Life, e.Turn, e.To = w.worker, w.life, w.turn, now()
	return w.journal.add(e)
}

func (w *worker) look(h hold) (bool, error) {
	from := now()
	held := h.held()
	return held, w.note(event{What: eventLook, From: from, Held: held})
}

func (w *worker) mark(h hold, token int64) error {
	if held, err := w.look(h); !held {
		return err
	}
	return w.note(event{What: eventMark, From: now(), Token: token})
}

func (w *worker) read() error {
	from := now()
	a, err := w.register.ask("read %d", w.worker)
	return w.note(event{What: eventRead, From: from, Token: a.token, Value: a.value, Error: text(err)})
}

func (w *worker) write(token int64) error {
	value := valueOf(w.worker, w.life, w.turn)
	from := now()
	a, err := w.register.ask("write %d %d %d", w.worker, token, value)
	return w.note(event{What: eventWrite, From: from, Token: token, Value: value, Stale: a.no, Error: text(err)})
}

// valueOf is what a turn writes: never the same twice.
func valueOf(worker, life, turn int) int64 {
	return int64(worker+1)<<48 | int64(life)<<32 | int64(turn)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var errNoToken = errors.New("no node of this hold is there")
