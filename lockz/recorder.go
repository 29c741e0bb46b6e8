package lockz

import (
	"container/list"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// maxLosses is how many losses a recorder keeps.
const maxLosses = 20

// recorder keeps what the hooks of one manager tell.
type recorder struct {
	began time.Time

	mu      sync.Mutex
	waits   list.List // of *acquisition, in order of their begin
	holds   list.List // of *acquisition, in order of their grant
	watches list.List // of *watch

	losses    []lossJSON // the last ones, the latest first
	lossCount int
	changed   session.Change  // the last change of state; zero before the first
	lostCount int             // sessions
	lastLost  sessionLossJSON // zero if none was
}

// acquisition is one acquisition, from its begin to the end of its hold.
type acquisition struct {
	info  session.AcquireInfo
	asked time.Time // zero if it is not known

	// Set when the acquisition moves to the holds.
	granted time.Time
	node    string
	lease   *queue.Lease

	// Guarded by recorder.mu.
	given bool       // the acquisition has returned its lease
	in    *list.List // waits or holds, or nil
	at    *list.Element
}

// watch is a wait for a node ahead.
type watch struct {
	of    *acquisition // of goroutines that share a place, that of the first; nil if it is not known
	began time.Time
	info  session.WatchInfo
}

// recorders has the recorder of each manager, for as long as the manager is reachable. A recorder
// does not refer to its manager once nothing is held or waited for.
var recorders = struct {
	mu sync.Mutex
	of map[weak.Pointer[session.Manager]]*recorder
}{of: make(map[weak.Pointer[session.Manager]]*recorder)}

// recorderOf returns the recorder of m, which begins to record at the first call.
func recorderOf(m *session.Manager) *recorder {
	recorders.mu.Lock()
	defer recorders.mu.Unlock()
	key := weak.Make(m)
	if r := recorders.of[key]; r != nil {
		return r
	}
	r := &recorder{began: time.Now()}
	m.AddTrace(session.Trace{Acquire: r.acquire, Watch: r.watch, Hold: r.hold, Loss: r.loss, State: r.state})
	recorders.of[key] = r
	runtime.AddCleanup(m, forget, key)
	return r
}

func forget(key weak.Pointer[session.Manager]) {
	recorders.mu.Lock()
	defer recorders.mu.Unlock()
	delete(recorders.of, key)
}

// The hooks follow. The recorder itself is the key of the acquisition in the contexts.

func (r *recorder) acquire(ctx context.Context, info session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
	a := &acquisition{info: info, asked: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.moveLocked(&r.waits)
	return context.WithValue(ctx, r, a), func(session.AcquireResult) {
		r.mu.Lock()
		defer r.mu.Unlock()
		a.given = true
		if a.in == &r.waits { // otherwise it holds, or has held
			a.moveLocked(nil)
		}
	}
}

func (r *recorder) hold(ctx context.Context, h session.HoldInfo) func(error) {
	a := r.from(ctx)
	if a == nil { // the acquisition began before the recorder
		a = &acquisition{info: session.AcquireInfo{Kind: h.Kind, Name: h.Name, Path: h.Path, Label: h.Label}}
	}
	a.granted, a.node = time.Now(), h.Node
	a.lease, _ = queue.LeaseFrom(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	a.moveLocked(&r.holds)
	return func(error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		a.moveLocked(nil)
	}
}

func (r *recorder) watch(ctx context.Context, info session.WatchInfo) (context.Context, func(error)) {
	w := &watch{of: r.from(ctx), began: time.Now(), info: info}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.watches.PushBack(w)
	return ctx, func(error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watches.Remove(at)
	}
}

func (r *recorder) loss(ctx context.Context, h session.HoldInfo, cause error) {
	if errors.Is(cause, session.ErrClosed) {
		return // the program itself has released it, with Close
	}
	l := lossJSON{lockJSON: lockJSON{h.Kind, h.Name, h.Path, h.Label}, Time: time.Now(), Node: h.Node, Cause: cause.Error()}
	if a := r.from(ctx); a != nil {
		l.Since = a.granted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lossCount++
	r.losses = append([]lossJSON{l}, r.losses[:min(len(r.losses), maxLosses-1)]...)
}

func (r *recorder) state(c session.Change) {
	if c.From == c.To {
		return // the state at the begin
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = c
	if c.To == session.Lost {
		r.lostCount++
		r.lastLost = sessionLossJSON{Time: c.At, ID: hex(c.Session), Cause: text(c.Err)}
	}
}

func (r *recorder) from(ctx context.Context) *acquisition {
	a, _ := ctx.Value(r).(*acquisition)
	return a
}

// moveLocked moves the acquisition to the end of a list, or out of all lists if to is nil.
func (a *acquisition) moveLocked(to *list.List) {
	if a.in != nil {
		a.in.Remove(a.at)
	}
	a.in, a.at = to, nil
	if to != nil {
		a.at = to.PushBack(a)
	}
}
