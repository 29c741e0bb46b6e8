package interop_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// meeting is a process with a lock that keeps its place, and a contender of another library. The contender
// waits for the lock with a timeout, if its library has that.
type meeting struct {
	ours  string
	rival client
}

var meetings = map[string]meeting{
	"mutex and Curator":           {"lazy-mutex", client{"java", "mutex-soon"}},
	"mutex and zk.Lock":           {"lazy-mutex", client{"go", "zk.Lock"}},
	"readers and kazoo's writer":  {"lazy-read", client{"python", "write-soon"}},
	"writers and kazoo's readers": {"lazy-write", client{"python", "read-soon"}},
}

// A contender of another library gets the lock from a process that only keeps its place and does nothing,
// and from one that is inside as soon as it leaves. Afterwards the process gets the lock again, and keeps its
// place.
func TestKeptPlace(t *testing.T) {
	longtest.InCI(t)
	for name, m := range meetings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := m.begin(t)
			p.comes(t, 1) // so that it has started
			p.leaves(t)
			for range 3 {
				p.keeps(t)
				p.comes(t, 1)
				p.leaves(t)

				p.keeps(t)
				p.inside(t, func() {
					p.comes(t, 1)
					testserver.WaitChildren(t, p.path, 2)
				})
				p.leaves(t)
			}
			p.keeps(t)
			finish(t, p.crew)
			p.check(t)
		})
	}
}

// party is a meeting that has begun.
type party struct {
	*site
	meeting
	ours   take
	mode   string // of ours
	crew   crew   // of the rival
	visits int    // that the rival was told to make
}

func (m meeting) begin(t *testing.T) *party {
	t.Helper()
	s := newSite(t, 0)
	s.open(t)
	kind := kinds[m.ours]
	ours, err := kind.open(t, s)
	must(t, err)
	return &party{site: s, meeting: m, ours: ours, mode: kind.mode, crew: languages[m.rival.language](t, s)}
}

// keeps has our process visit until it has taken the place again that it had kept, and keeps it.
func (p *party) keeps(t *testing.T) {
	t.Helper()
	var before []string
	zktest.Eventually(t, testserver.Patience, "a kept place to be taken again", func() bool {
		p.inside(t, func() {})
		now := testserver.Children(t, p.path)
		again := len(now) == 1 && slices.Equal(now, before)
		before = now
		return again
	})
}

// inside has our process do something while it has the lock.
func (p *party) inside(t *testing.T, do func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testserver.Patience)
	defer cancel()
	release, err := p.ours(ctx)
	must(t, err)
	must(t, p.append("enter", "ours", p.mode))
	do()
	must(t, p.append("leave", "ours", p.mode))
	if err := release(); !errors.Is(err, queue.ErrReleasePending) { // a slow machine
		must(t, err)
	}
}

// comes tells the rival to make some visits.
func (p *party) comes(t *testing.T, visits int) {
	t.Helper()
	p.visits += visits
	p.crew.enter(t, "rival", p.rival.kind, visits)
}

// leaves waits until the rival has made its visits.
func (p *party) leaves(t *testing.T) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the end of the rival's visit", func() bool {
		left := 0
		for _, e := range p.events(t) {
			if e.what == "leave" && e.client == "rival" {
				left++
			}
		}
		return left == p.visits
	})
}

func (p *party) check(t *testing.T) {
	t.Helper()
	if entries, fouls := replay(p.events(t), math.MaxInt); len(fouls) > 0 {
		t.Errorf("%d of %d visits are fouls: %s", len(fouls), entries, fouls[0])
	}
}
