package place

import (
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// Readers of one process share one place, which they keep together. Contenders of other processes come
// and go beside them, and only writers end the sharing. So when the watch on the children ends, readers
// list again and set a new one. In the meantime nobody joins.

// startSettingLocked begins to set the watch on the children of readers again. It returns false if the
// watch is pending, or not to be set again.
func (l *Local) startSettingLocked(t *turn) bool {
	k := t.tenure
	if !l.many || l.turn != t || k.setting || k.pending() || k.looks == maxLooks || !k.fresh(time.Now()) {
		return false
	}
	k.setting = true
	k.looks++
	return true
}

// setAgain lists the directory, and sets the watch on the children in the same request.
func (l *Local) setAgain(t *turn) {
	var w *core.Watch
	alone := false
	defer func() { l.endSetting(t, w, alone) }() // also if a policy ends the goroutine
	names, _, w, err := t.s.List(t.during(&t.stopChildren), l.q.dir)
	alone = err == nil && t.aloneIn(names)
}

// aloneIn reports whether the names of a listing have our node and no contender that has to wait for
// it. A directory with more than maxCrowd contenders is too long to be listed again and again, and
// aloneIn reports false.
func (t *turn) aloneIn(names []string) bool {
	kind := t.r.Kind
	nodes, err := ofKind(decide.ParseNodes(names, kind.Prefixes...), kind)
	return err == nil && len(nodes) <= maxCrowd && slices.Contains(names, t.node.Name) &&
		!decide.KeepsWaiting(kind, t.node, nodes)
}

// endSetting follows setAgain. w is nil if the listing has failed. If the readers are alone, those that
// wait for the watch join. If the watch has ended already, because other readers come and go, it is set
// once more unless somebody waits for it. Otherwise the place is given up if it is kept, and those that
// wait get a contender of their own.
func (l *Local) endSetting(t *turn, w *core.Watch, alone bool) {
	l.mu.Lock()
	k := t.tenure
	k.setting = false
	if l.turn != t {
		l.mu.Unlock()
		return
	}
	k.watch = w
	if alone && k.undisturbed(time.Now()) && t.stands() {
		admitted := l.admitLocked(t, l.waiting)
		l.mu.Unlock()
		t.guardChildren(w)
		t.passTo(admitted)
		return
	}
	if alone && l.waiting.Len() == 0 && l.startSettingLocked(t) {
		l.mu.Unlock()
		go l.setAgain(t)
		return
	}
	k.fit = false
	var gone *turn
	switch {
	case t.is() == decide.Keeping:
		if w != nil && !alone {
			l.habit.takenAway(k.used)
		}
		gone = l.leaveLocked()
	case l.waiting.Len() > 0:
		l.turn = nil
		l.contendLocked(&sharedContender{})
	}
	l.mu.Unlock()
	gone.giveUp()
}
