package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// Scanner follows all locks below a path, with few requests: it reads the directories in turn, so many in a
// round. Its methods must not be called at once.
type Scanner struct {
	t      *Tree
	bounds Bounds
	dirs   map[string]*dir
}

// dir is a directory that may be a lock's.
type dir struct {
	path   string
	depth  int
	lock   *Lock     // the last reading; nil: none yet
	at     time.Time // of the last reading
	rate   float64   // changes a second between the last two readings
	gone   int       // readings since it was there
	unread string    // why it could not be read
}

// keepGone is for how many readings a directory that is gone is kept. Servers remove the directory of a lock
// that nobody holds, and it comes back with the next holder.
const keepGone = 5

// NewScanner returns a scanner that has read nothing yet.
func NewScanner(t *Tree, from string, b Bounds) *Scanner {
	return &Scanner{t: t, bounds: b, dirs: map[string]*dir{from: {path: from}}}
}

// Round reads directories: those that were never read, then those of the paths in first, and then those whose
// reading is the oldest. It reads so many of them; 0 stands for all, and for those that it finds below
// them. It fails as Read does.
func (s *Scanner) Round(ctx context.Context, most int, first []string) error {
	for {
		due := s.due(most, first)
		if err := s.read(ctx, due); err != nil {
			return err
		}
		if most > 0 || !slices.ContainsFunc(s.all(), func(d *dir) bool { return d.at.IsZero() }) {
			return nil
		}
		first, most = nil, 0
	}
}

func (s *Scanner) all() []*dir {
	out := make([]*dir, 0, len(s.dirs))
	for _, d := range s.dirs {
		out = append(out, d)
	}
	return out
}

// due returns the directories to read in this round.
func (s *Scanner) due(most int, first []string) []*dir {
	all := s.all()
	if most == 0 {
		if unread := slices.DeleteFunc(slices.Clone(all), func(d *dir) bool { return !d.at.IsZero() }); len(unread) > 0 {
			return unread
		}
		return all
	}
	urgent := make(map[string]bool, len(first))
	for _, p := range first {
		urgent[p] = true
	}
	rank := func(d *dir) int {
		switch {
		case d.at.IsZero():
			return 0
		case urgent[d.path]:
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(a, b *dir) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.at.Compare(b.at), strings.Compare(a.path, b.path))
	})
	return all[:min(most, len(all))]
}

// read reads directories, at most 16 at once.
func (s *Scanner) read(ctx context.Context, due []*dir) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel / 2)
	var mu sync.Mutex // guards s.dirs
	for _, d := range due {
		g.Go(func() error {
			before := d.lock
			if before == nil {
				before = &Lock{Path: d.path}
			}
			l, err := s.t.Update(ctx, before, Holders)
			mu.Lock()
			defer mu.Unlock()
			return s.note(d, l, err, time.Now())
		})
	}
	return g.Wait()
}

// note takes over a reading.
func (s *Scanner) note(d *dir, l *Lock, err error, now time.Time) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l, err = &Lock{Path: d.path}, nil
		if d.gone++; d.gone > keepGone && d.depth > 0 {
			delete(s.dirs, d.path)
		}
	case errors.Is(err, zk.ErrNoAuth), d.depth > 0 && tooLong(err):
		d.unread, d.at = Plain(err), now
		return nil
	case err != nil:
		return err
	default:
		d.gone, d.unread = 0, ""
	}
	if d.lock != nil {
		d.rate = rate(d.lock, l, now.Sub(d.at))
	}
	d.lock, d.at = l, now
	if d.depth < s.bounds.Depth {
		for _, p := range l.below() {
			if s.dirs[p] == nil && len(s.dirs) < s.bounds.Nodes {
				s.dirs[p] = &dir{path: p, depth: d.depth + 1}
			}
		}
	}
	return nil
}

// rate returns the changes a second between two readings. A directory that was made anew counts from then.
func rate(before, after *Lock, d time.Duration) float64 {
	n := after.Changes
	if after.Birth == before.Birth {
		n -= before.Changes
	}
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Row is a lock and how busy it is.
type Row struct {
	*Lock
	Rate float64 // changes a second: contenders that came, and that left
}

// Rows returns the locks in use, the busiest first: by changes, and then by waiters.
func (s *Scanner) Rows() []Row {
	var out []Row
	for _, d := range s.dirs {
		if d.lock != nil && d.unread == "" && (len(d.lock.Contenders) > 0 || d.rate > 0) {
			out = append(out, Row{d.lock, d.rate})
		}
	}
	out = withoutGates(out, func(r Row) *Lock { return r.Lock })
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.Waiting(), a.Waiting()), strings.Compare(a.Path, b.Path))
	})
	return out
}

// Scanned sums up what a scanner has read.
type Scanned struct {
	Directories int
	Oldest      time.Time // of the readings
	Unread      []Unread
	Full        bool // no more directories are followed: see Bounds
	Missing     bool // the path itself does not exist
}

// Scanned sums up the readings.
func (s *Scanner) Scanned() Scanned {
	out := Scanned{Directories: len(s.dirs), Full: len(s.dirs) >= s.bounds.Nodes}
	for _, d := range s.dirs {
		if out.Oldest.IsZero() || d.at.Before(out.Oldest) {
			out.Oldest = d.at
		}
		if d.unread != "" {
			out.Unread = append(out.Unread, Unread{d.path, d.unread})
		}
		out.Missing = out.Missing || d.depth == 0 && d.gone > 0
	}
	slices.SortFunc(out.Unread, func(a, b Unread) int { return strings.Compare(a.Path, b.Path) })
	return out
}
