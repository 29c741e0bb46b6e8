package simulation

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// observer makes the elections of one worker that observes.
type observer struct {
	m    *session.Manager
	path string
}

// observation is what an observer has been told.
type observation struct {
	k    *worker
	path string

	// The fields below are guarded by views.mu.
	told  bool
	node  string // of the leader; "" for none
	past  bool   // it is at the end of the counter
	token int64  // the highest, of others
	since time.Time
}

// views has all observers, and what they should know.
type views struct {
	w *world

	mu    sync.Mutex
	all   []*observation
	first map[string]string    // by path, the node of the leader on the server
	moved map[string]time.Time // since when
}

func newViews(w *world) *views {
	return &views{w: w, first: make(map[string]string), moved: make(map[string]time.Time)}
}

// observerTurn observes an election for a while, or until the sequence ends.
func (k *worker) observerTurn(c *call, of observer) {
	w := k.world
	e, err := election.New(of.m, of.path)
	if err != nil {
		w.checks.fail("open %s: %v", c.path, err)
		return
	}
	d := k.upTo(4 * w.plan.busy)
	if k.rng.IntN(2) == 0 {
		d = time.Duration(k.rng.Int64N(int64(time.Minute))) // also across the healing
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	end := slot(time.Now().Add(d), k.m.party, mix(w.seed, "observe", k.id, time.Now()))
	defer time.AfterFunc(time.Until(end), cancel).Stop()
	k.now("Observe " + c.path)
	for again := true; again; {
		again = k.observe(ctx, c, e)
	}
}

// observe is one loop. It reports whether the worker has left the loop by itself.
func (k *worker) observe(ctx context.Context, c *call, e *election.Election) bool {
	w := k.world
	k.log("Observe %s", c.path)
	v := w.views.begin(k, c.path)
	defer w.views.end(v)
	for leader, err := range e.Observe(ctx) {
		switch {
		case err == nil:
			w.views.tell(v, leader.Path, leader.Token)
		case errors.Is(err, election.ErrNoLeader):
			w.views.tell(v, "", 0)
		case ctx.Err() != nil && errors.Is(err, ctx.Err()), errors.Is(err, session.ErrClosed) && k.m.leaves(c.mgr):
			k.log("Observe %s: %s", c.path, kindOfError(err))
			return false
		default:
			w.checks.fail("%s: Observe fails: %v", k.name, err)
			return false
		}
		if k.rng.IntN(16) == 0 {
			return true
		}
	}
	w.checks.fail("%s: Observe ends without an error", k.name)
	return false
}

func (vs *views) begin(k *worker, dir string) *observation {
	v := &observation{k: k, path: dir, since: time.Now()}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.all = append(vs.all, v)
	return v
}

func (vs *views) end(v *observation) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.all = slices.DeleteFunc(vs.all, func(o *observation) bool { return o == v })
}

// tell notes a pair of the sequence. A leader is told of once, and none comes back. But at the end of the counter
// candidates have one number, or one ahead of all others, for a moment, until they have left.
func (vs *views) tell(v *observation, node string, token int64) {
	v.k.log("sees %s lead", node)
	n, _ := queue.ParseNode(path.Base(node))
	vs.mu.Lock()
	was := *v
	v.told, v.node, v.since, v.past = true, node, time.Now(), n.Sequence < 0 || n.Sequence == math.MaxInt32
	if !v.past {
		v.token = max(v.token, token)
	}
	vs.mu.Unlock()
	switch {
	case node != "" && !v.past && (token < was.token || token == was.token && !was.past):
		vs.w.checks.fail("%s: an observer is told of %s with the term %d, after %d", v.k.name, node, token, was.token)
	case was.told && node == was.node:
		vs.w.checks.fail("%s: an observer is told twice that %s leads", v.k.name, orNobody(node))
	}
}

// watchOver compares the views with the server now and then, in the calm, until stop is closed.
func (vs *views) watchOver(stop <-chan struct{}) {
	vs.w.every("views", stop, func() {
		vs.look()
		for _, text := range vs.wrong() {
			vs.w.checks.fail("%s", text)
		}
	})
}

// look notes which node leads at each path.
func (vs *views) look() {
	for _, p := range vs.w.plan.paths {
		first := contender{}
		for _, c := range vs.w.contenders(p) {
			if first.path == "" || c.seq < first.seq {
				first = c
			}
		}
		vs.mu.Lock()
		if was, known := vs.first[p]; !known || was != first.path {
			vs.first[p], vs.moved[p] = first.path, time.Now()
		}
		vs.mu.Unlock()
	}
}

// wrong says which views have been wrong for too long. A view that nobody leads may last for a session timeout, since
// servers tell nothing of a directory that there is not yet.
func (vs *views) wrong() (texts []string) {
	calm, now := vs.w.calmSince(), time.Now()
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if calm.IsZero() {
		return nil
	}
	for _, v := range vs.all {
		right := vs.first[v.path]
		if v.told && v.node == right {
			continue
		}
		since := later(later(calm, v.since), later(vs.moved[v.path], v.k.m.connectedSince(now)))
		limit := prompt + observerPace
		if v.told && v.node == "" {
			limit += v.k.m.timeout
		}
		if late := now.Sub(since); late > limit {
			texts = append(texts, v.k.name+" has seen "+v.says()+" for "+late.String()+", but "+orNobody(right)+" leads")
		}
	}
	return texts
}

// observerPace is how long an observer may wait before it looks again, if the leader changes all the time.
const observerPace = time.Second

func (v *observation) says() string {
	if !v.told {
		return "nothing"
	}
	return orNobody(v.node) + " lead"
}

func orNobody(node string) string {
	if node == "" {
		return "nobody"
	}
	return node
}

// connectedSince returns since when the member has had its session, or now if it is not connected.
func (m *member) connectedSince(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up {
		return now
	}
	return m.since
}
