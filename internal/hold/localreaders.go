package hold

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/place"
)

// Readers of one process share one place, which they keep together. Contenders of other processes come
// and go beside them, and only writers end the sharing. So when the watch on the children ends, readers
// list again and set a new one. In the meantime nobody joins.

// startSettingLocked begins to set the watch on the children of readers again. It returns false if the
// watch is pending, or not to be set again.
func (l *Local) startSettingLocked(t *tenure) bool {
	if !l.many || l.turn != t || t.setting || t.pending() || t.looks == maxLooks || !t.fresh(time.Now()) {
		return false
	}
	t.setting = true
	t.looks++
	return true
}

// setAgain lists the directory, and sets the watch on the children in the same request.
func (l *Local) setAgain(t *tenure) {
	var w *core.Watch
	alone := false
	defer func() { l.endSetting(t, w, alone) }() // also if a policy ends the goroutine
	w, alone = t.LookAround()
}

// endSetting follows setAgain. w is nil if the listing has failed. If the readers are alone, those that
// wait for the watch join. If the watch has ended already, because other readers come and go, it is set
// once more unless somebody waits for it. Otherwise the place is given up if it is kept, and those that
// wait get a contender of their own.
func (l *Local) endSetting(t *tenure, w *core.Watch, alone bool) {
	l.mu.Lock()
	t.setting = false
	if l.turn != t {
		l.mu.Unlock()
		return
	}
	t.watch = w
	if alone && t.undisturbed(time.Now()) && t.Stands() {
		admitted := l.admitLocked(t, l.waiting)
		l.mu.Unlock()
		t.GuardChildren(w)
		t.passTo(admitted)
		return
	}
	if alone && l.waiting.Len() == 0 && l.startSettingLocked(t) {
		l.mu.Unlock()
		go l.setAgain(t)
		return
	}
	t.fit = false
	var gone *place.Turn
	switch {
	case t.Kept():
		if w != nil && !alone {
			l.habit.takenAway(t.used)
		}
		gone = l.leaveLocked()
	case l.waiting.Len() > 0:
		l.turn = nil
		l.contendLocked(&sharedContender{})
	}
	l.mu.Unlock()
	gone.GiveUp()
}
