package share

import (
	"container/list"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

const longestKeep = time.Minute

// habit says whether it is worth while to keep the next turn: see zklock.WithLazyRelease.
type habit struct {
	skip    int       // turns that are not kept
	penalty int       // what skip was last; 0 after a turn that was used again
	until   time.Time // then it can be forgotten
}

const maxPenalty = 64 // turns in a row

func (h *habit) next() bool {
	if h.skip > 0 {
		h.skip--
		return false
	}
	return true
}

func (h *habit) takenAway(until time.Time) {
	h.penalty = min(max(1, 2*h.penalty), maxPenalty)
	h.skip, h.until = h.penalty, until
}

func (h *habit) isForgotten(now time.Time) bool { return h.penalty == 0 || !now.Before(h.until) }

func mostKept(m *session.Manager) int { return m.MaxNodes() / 2 }

// keptTurns has the turns that were kept, the longest unused first. At most half of a manager's nodes are kept, so
// that ten thousand keys that are used once each do not fill a session.
var keptTurns = keeper{all: make(map[*session.Manager]*list.List)}

type keeper struct {
	mu  sync.Mutex
	all map[*session.Manager]*list.List // of *turn
}

// add may take another turn out, which the caller gives up unless it is in use.
func (k *keeper) add(t *turn) (beyond *turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := t.of.q.Manager()
	of := k.all[m]
	switch {
	case t.at != nil:
		of.MoveToBack(t.at)
		return nil
	case of == nil:
		of = list.New()
		k.all[m] = of
	}
	if t.at = of.PushBack(t); of.Len() > mostKept(m) {
		beyond = of.Remove(of.Front()).(*turn)
		beyond.at = nil
	}
	return beyond
}

func (k *keeper) remove(t *turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.at == nil {
		return
	}
	m := t.of.q.Manager()
	k.all[m].Remove(t.at)
	t.at = nil
	if k.all[m].Len() == 0 {
		delete(k.all, m)
	}
}
