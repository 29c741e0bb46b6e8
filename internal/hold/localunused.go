package hold

// A Local that nobody uses can be forgotten: a new one is as good. Package keyed does that.

// WhenUnused has f called when the Local has come to be unused: at the end of a turn, and of the time for which a place was
// to be kept. f may also be called at other times. It is called while no mutex of this package is locked. WhenUnused comes
// before the first acquisition.
func (l *Local) WhenUnused(f func()) { l.unused = f }

// InUse reports whether a call that comes now has something to share: a place, or what the Local has learned about keeping
// places. It remembers that until the time is over for which it has begun to keep one, so the timer runs at least as long as
// a place is kept.
func (l *Local) InUse() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.idleLocked() || l.ticking
}

// tellUnused tells that the Local may have come to be unused. Local.mu is not locked.
func (l *Local) tellUnused() {
	if l.unused != nil {
		l.unused()
	}
}
