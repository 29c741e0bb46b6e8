package logbook

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	// firstNotice is how long there may be no connection without a notice. That is enough to
	// get past servers that are down if another is not.
	firstNotice = 2 * time.Second
	// leastGap is the time from the first notice to the second. The gaps double, up to mostGap.
	leastGap = 4 * time.Second
	mostGap  = 10 * time.Minute
	// mostEarly is how many further notices one outage may have, because of failures of a new
	// kind. They keep a distance of leastGap too. Without the bound, a server that fails in ever
	// new ways could fill the log.
	mostEarly = 8
	// recent is how old a failure may be to be in a notice.
	recent = time.Minute
	// mostTold is how many kinds of failures an outage remembers. Further ones count as told.
	mostTold = 200
)

// outage is a time without a connection that has the session. It collects why there is none, and
// decides when a notice about it is due, so that the log says soon what is wrong and then does not
// repeat it too often. It logs nothing itself.
type outage struct {
	began time.Time // zero: there is no outage
	dials int       // that have failed

	why  map[string]seen // by the key of a target
	told map[string]bool // kinds of failures that were in a notice

	notices int       // so far
	regular int       // of them, those whose time had come
	next    time.Time // when the next one of them is due
	last    time.Time // when the last notice was
	news    bool      // there was a failure of a new kind since
}

// seen is a failure, and when it was.
type seen struct {
	*Failure
	at time.Time
}

func (o *outage) active() bool { return !o.began.IsZero() }

func (o *outage) begin(now time.Time) {
	if !o.active() {
		*o = outage{began: now, next: now.Add(firstNotice), why: map[string]seen{}, told: map[string]bool{}}
	}
}

// failed takes a failure.
func (o *outage) failed(now time.Time, f *Failure) {
	if !o.active() {
		return
	}
	if f.Step != StepLookup && f.Step != StepResolve {
		o.dials++
	}
	o.note(now, f)
	o.news = o.news || !o.told[kind(f)] && len(o.told) < mostTold
}

// isNew reports whether a failure is the first of its kind in this outage, and takes it for told.
func (o *outage) isNew(f *Failure) bool {
	return o.active() && o.tell(f)
}

// tell notes that a failure is told, and reports whether it is the first of its kind.
func (o *outage) tell(f *Failure) bool {
	if k := kind(f); !o.told[k] && len(o.told) < mostTold {
		o.told[k] = true
		return true
	}
	return false
}

// note takes the state of an attempt that has not failed yet.
func (o *outage) note(now time.Time, f *Failure) {
	if !o.active() {
		return
	}
	maps.DeleteFunc(o.why, func(_ string, s seen) bool { return now.Sub(s.at) > recent })
	o.why[f.To.key()] = seen{f, now}
}

// due returns when the next notice is due.
func (o *outage) due() time.Time {
	early := o.last.Add(leastGap)
	if o.news && o.notices > 0 && o.notices-o.regular < mostEarly && early.Before(o.next) {
		return early
	}
	return o.next
}

// notice returns what a notice says: the recent failures, and those of names, in order.
func (o *outage) notice(now time.Time, names []*Failure) Failures {
	o.notices++
	if !now.Before(o.next) {
		gap := min(leastGap<<min(o.regular, 20), mostGap)
		o.next = now.Add(gap)
		o.regular++
	}
	o.last, o.news = now, false
	all := slices.Clip(Failures(names))
	for _, key := range slices.Sorted(maps.Keys(o.why)) {
		s := o.why[key]
		same := func(f *Failure) bool { return f.Error() == s.Error() }
		if now.Sub(s.at) <= recent && !slices.ContainsFunc(all, same) {
			all = append(all, s.Failure)
		}
	}
	for _, f := range all {
		o.tell(f)
	}
	return all
}

// end ends the outage, and returns how long it was and how many notices it had.
func (o *outage) end(now time.Time) (took time.Duration, notices int) {
	if !o.active() {
		return 0, 0
	}
	took, notices = now.Sub(o.began), o.notices
	*o = outage{}
	return took, notices
}

// kind is the text of a failure without numbers. Ports and addresses change from dial to dial, and
// servers often differ by a number only.
func kind(f *Failure) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, f.Error())
}
