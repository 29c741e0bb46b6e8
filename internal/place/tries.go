package place

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// A try looks first: it lists the directory before it makes a node. If it would have to wait, it says so, and has written
// nothing. Otherwise it enters as every contender does, and only the listing behind its own node decides. What the look
// has shown grants nothing, so a listing that is out of date can cost a try, and no more.
//
// One kind of contender leaves only for a node that it sees: a place that is kept. If nothing else is in the way, the try
// enters, and waits for a moment (keeperPatience). It does so too behind nodes of its own session that are about to be
// deleted, since these are gone in a moment.

// Ask is a queue, and what a contender would ask for there.
type Ask struct {
	Queue   *Queue
	Request Request
}

// look fails with ErrBusy if one of the attempts is a try that would have to wait, or would have to at a place of
// Entry.Also. All directories are listed in one flight. A refusal to list ends the try as well: the listing behind its
// node would be refused too.
func (all entrants) look() error {
	var looks entrants
	for _, a := range all {
		if !a.looksFirst() {
			continue
		}
		looks = append(looks, a)
		for _, one := range a.entry.Also {
			if err := one.Request.complete(); err != nil {
				return err
			}
			looks = append(looks, entrant{newAttempt(one.Queue, a.s, &one.Request, &Entry{Try: true}), a.ctx})
		}
	}
	if len(looks) == 0 {
		return nil
	}
	return cmp.Or(looks.each(entrant.look)...)
}

// LookAt is the look of a try alone: it fails with ErrBusy if a contender would have to wait at one of several places
// of one manager. The error is that of a lock at these places.
func LookAt(ctx context.Context, asks []Ask) error {
	q := asks[0].Queue
	err := asks[0].Request.complete()
	if err != nil {
		return Failed("acquire", pathsOf(asks), err)
	}
	err = q.inSession(ctx, q.newPace(), func(ctx context.Context, s *core.Session) error {
		a := newAttempt(q, s, &asks[0].Request, &Entry{Try: true, Also: asks[1:]})
		return entrants{{a, ctx}}.look()
	})
	if err != nil {
		return Failed("acquire", pathsOf(asks), err)
	}
	return nil
}

func pathsOf(asks []Ask) string {
	var all []string
	for _, one := range asks {
		all = append(all, one.Queue.dir)
	}
	return strings.Join(all, ", ")
}

func (a entrant) looksFirst() bool {
	return a.entry.Try && !a.entry.Looked && a.entry.beside == nil && a.entry.renews == nil
}

// look asks before there is a node, so survey lists behind a sync.
func (a entrant) look() error {
	names, err := a.survey(a.ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil // nobody contends
	case err != nil:
		return err
	}
	ahead := decide.WouldWait(a.r.Kind, decide.Newcomer(a.r.Prefix, a.r.Weight), a.staying(names), a.config)
	if ahead != nil && a.inUse(ahead) {
		a.position = ahead.Count()
		return ErrBusy
	}
	return nil
}

// staying returns the names without those of nodes of this session that are about to be deleted.
func (a *attempt) staying(names []string) []string {
	leaves := func(name string) bool { return a.s.IsLeaving(path.Join(a.q.dir, name)) }
	if !slices.ContainsFunc(names, leaves) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), leaves)
}

// isBusy reports whether a try that has entered gives up. It has more to wait for than places that are kept and nodes
// that are about to be deleted.
func (a *attempt) isBusy(ahead *decide.Tail) bool {
	if names := a.staying(a.names); len(names) < len(a.names) {
		ahead = a.reader().Read(names).Ahead
		ahead.Sort()
	}
	return !ahead.MayGo() && a.inUse(ahead)
}

// inUse reports whether the nodes in the way are known not to be kept places that nobody uses: by their names, or
// because one of them is held in this session.
func (a *attempt) inUse(ahead *decide.Tail) bool {
	return ahead.Wanted(a.r.Kind) || slices.ContainsFunc(ahead.Last, func(b decide.Blocker) bool {
		since, _ := held.look(a.s, path.Join(a.q.dir, b.Node.Name))
		return !since.IsZero()
	})
}

// keeperPatience is how long a try waits for kept places to leave, once it has entered. The try cannot know how far the
// keepers are from the servers. The news of the try's node takes half a keeper's round trip, and so does the keeper's
// delete. A keeper that reads lists the directory in between, which takes one more. So 250 ms are enough for keepers with
// round trips of 100 ms, and for a caller with round trips of 100 ms, which needs one to watch them and half a one for the
// news that they are gone.
const keeperPatience = 250 * time.Millisecond
