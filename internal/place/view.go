package place

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/kinds"
)

// view is what a waiting attempt knows of the contenders ahead of it. If the wait ends by its
// context, the error says who they are. That takes no request: the watches tell which of the
// nodes still stand. A view does not change. Any goroutine may read it.
type view struct {
	dir     string // of the lock
	me      *kinds.Node
	targets []decide.Blocker // the nodes that are watched
	watches []*core.Watch    // on the targets
	beyond  int              // nodes ahead that are not watched; some may have left since the listing
	head    int              // so many targets are the first contenders of the queue
	limit   int              // leases of the semaphore; 0 for other locks
	session int64            // our own
	counted bool             // the limit was never higher, so all holders go by it
	plain   bool             // the attempt is plain, so what the owners of the targets say counts

	// A reading of the ensemble's clock: our node was created at a time that its stat tells, and we knew
	// it at known. There is no such reading without a watch on our own node, or before its answer.
	own   *core.Watch
	known time.Time
}

// owner returns what the contender that owns a target says, as far as that counts.
func (v *view) owner(target int) core.Owner {
	if !v.plain {
		return core.OwnerUnknown
	}
	return v.watches[target].Owner()
}

// watchOn returns the watch on a target, or nil if there is none. v may be nil.
func (v *view) watchOn(name string) *core.Watch {
	if v == nil {
		return nil
	}
	if i := slices.IndexFunc(v.targets, func(b decide.Blocker) bool { return b.Node.Name == name }); i >= 0 {
		return v.watches[i]
	}
	return nil
}

// named returns the target that text names, and how many targets stand. It returns -1 if none does.
//
// That is the holder if it is known: the first contender of the queue. Otherwise it is the nearest node
// ahead.
func (v *view) named() (target, count int) {
	first, nearest := -1, -1
	for i, w := range v.watches {
		if stands(w) {
			if first < 0 {
				first = i
			}
			nearest = i
			count++
		}
	}
	if v.holds(first) {
		return first, count
	}
	return nearest, count
}

// holds reports whether a target is known to be the first contender of the queue if it stands. It returns false for -1.
func (v *view) holds(target int) bool {
	switch {
	case target < 0:
		return false
	case v.owner(target) == core.OwnerFirst:
		return true
	case target >= v.head:
		return false
	}
	for i, w := range v.watches[:target] {
		if v.targets[i].Replaces || w != nil && w.Event() != core.WatchDeleted {
			return false // it may stand: the watch ends also when its data changes, or with the connection
		}
	}
	return true
}

// unwatched returns how many nodes ahead are not watched, at most.
func (v *view) unwatched() int {
	for i := range v.watches {
		if v.owner(i) == core.OwnerFirst {
			return 0
		}
	}
	return v.beyond
}

// reason says who is ahead, or returns the zero value if no node stands as far as is known.
func (v *view) reason(now time.Time) (out kinds.WaitError) {
	i, count := v.named()
	if i < 0 {
		return out
	}
	how := "behind "
	switch {
	case v.holds(i):
		how, out.Ahead.Holder = "held by ", true
	case decide.Compare(v.targets[i].Node, *v.me) > 0: // see renew.go
		how = "waiting for "
	}
	out.Ahead.Path, out.Ahead.Sequence = path.Join(v.dir, v.targets[i].Node.Name), v.targets[i].Node.Sequence
	if data, stat := known(v.watches[i]); stat != nil {
		describe(&out.Ahead, slices.Clone(data), stat) // the wait goes by the data
		out.Ahead.Own = out.Ahead.Session == v.session
	}
	out.Reason = v.leases() + how + v.describe(i, now)
	switch more := v.unwatched() + count - 1; {
	case v.unwatched() > 0:
		out.Reason = fmt.Sprintf("%s; up to %d more ahead", out.Reason, more)
	case more > 0:
		out.Reason = fmt.Sprintf("%s; %d more ahead", out.Reason, more)
	}
	return out
}

// leases says how many leases of a semaphore are taken, as far as is known.
func (v *view) leases() string {
	switch {
	case v.limit < 2:
		return ""
	case v.beyond > 0 || v.head < len(v.targets) || !v.counted:
		return fmt.Sprintf("limit of %d leases; ", v.limit)
	}
	taken := 0
	for i, w := range v.watches {
		if stands(w) {
			if decide.Sum(taken, v.targets[i].Weight) > v.limit {
				break
			}
			taken += v.targets[i].Weight
		}
	}
	return fmt.Sprintf("%d of %d leases taken; ", taken, v.limit)
}

// describe says who the contender of a target is, and how old its node is, or only which node it is if that is
// all that is known. The age includes the time for which the contender was waiting itself.
func (v *view) describe(target int, now time.Time) string {
	data, stat := known(v.watches[target])
	if stat == nil {
		return shortName(v.targets[target].Node)
	}
	out := v.who(v.targets[target].Node, data, stat)
	return out + ", in the queue for " + Short(v.age(stat, now))
}

// short returns the part of the node's name that people can read.
func shortName(n kinds.Node) string { return fmt.Sprintf("%s%010d", n.Prefix, n.Sequence) }

// who says who a contender is.
func (v *view) who(n kinds.Node, data []byte, stat *zk.Stat) string {
	who := nodedata.Of(data)
	name := shortName(n)
	switch {
	case stat.EphemeralOwner == v.session:
		name = "this process"
	case who.ID != "":
		name = quoted(who.ID)
	}
	if who.Label != "" {
		name += ", " + strconv.Quote(who.Label)
	}
	if string(data) == kinds.RevokeMessage {
		name += ", which was asked to release it"
	}
	if isOrphan(stat) {
		name += ", whose node has no session and stays until it is deleted"
	}
	return name
}

// age returns how old a node is by the ensemble's clock, which can differ from ours.
func (v *view) age(stat *zk.Stat, now time.Time) time.Duration {
	if _, own := known(v.own); own != nil && !v.known.IsZero() {
		now = time.UnixMilli(own.Ctime).Add(now.Sub(v.known))
	}
	return max(0, now.Sub(time.UnixMilli(stat.Ctime)))
}

// quoted returns an ID as it is if it is a word such as host/pid or an address, otherwise in
// quotation marks.
func quoted(id string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@+", r)
	}
	if strings.ContainsFunc(id, odd) {
		return strconv.Quote(id)
	}
	return id
}

// Short returns a duration in seconds, or in milliseconds if it is below one second.
func Short(d time.Duration) string {
	if d >= time.Second {
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
}

// isOrphan reports whether a contender's node is not ephemeral. Such a node was made by hand, and
// no session's end deletes it.
func isOrphan(stat *zk.Stat) bool { return stat != nil && stat.EphemeralOwner == 0 }
