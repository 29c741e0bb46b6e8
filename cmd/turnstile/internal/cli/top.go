package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/session"
)

// topOptions are the flags of top.
type topOptions struct {
	interval time.Duration
	rounds   int
	rate     int
	rows     int
	bounds   locks.Bounds
}

func topCommand(a *App) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Show the busiest locks, live",
		Long: `Show the locks at PREFIX and below it, the busiest first: those with the most changes a
second, then those with the most waiters. A change is a contender that comes or leaves.
In a terminal it shows one page; q or Ctrl-C ends it. Otherwise it prints a table each
round.

The first round reads all directories, as ls does. After that, top reads at most --rate
directories a second: those on the page each round if the rate allows it, and the others in
turn. The second line says how many requests the last round took, and how old the oldest
reading is. The last line says how many locks there are that do not fit. QUEUED is that of ls.

With --json it prints an object each round:
  time, requests, directories  of the round: when, and what it cost
  oldest    seconds since the directory was read whose reading is the oldest
  locks     array as of "ls --json", with changesPerSecond
  unread    array of {path, error}
  complete  false if --max directories are followed, and there are more`,
		Example: `  turnstile top /prod/locks
  turnstile top -n 2 /prod/locks | tail -20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix, err := pathArg(append(args, "/")[0])
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return usageError(err)
			}
			return a.top(cmd.Context(), prefix, o)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.interval, "interval", 2*time.Second, "time between rounds")
	f.IntVarP(&o.rounds, "rounds", "n", 0, "end after so many `rounds`; 0 is never")
	f.IntVar(&o.rate, "rate", 100, "read at most so many `directories` a second, after the first round")
	f.IntVar(&o.rows, "rows", 0, "show so many `locks`; 0 is as many as fit, at most 20 where top prints a table each round")
	boundFlags(cmd, &o.bounds)
	return cmd
}

func (o topOptions) check() error {
	switch {
	case o.interval < 100*time.Millisecond:
		return fmt.Errorf("--interval %v is shorter than 100ms", o.interval)
	case o.rounds < 0 || o.rows < 0:
		return errors.New("--rounds or --rows is negative")
	case o.rate < 1:
		return fmt.Errorf("--rate %d is not positive", o.rate)
	}
	return o.bounds.Check()
}

// budget returns how many directories a round may read.
func (o topOptions) budget() int { return max(1, int(float64(o.rate)*o.interval.Seconds())) }

func (a *App) top(ctx context.Context, prefix string, o topOptions) error {
	m, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	t := locks.NewTree(m, 0)
	if stat, err := t.Exists(ctx, prefix); err == nil && stat == nil {
		return withCode(codeNotFound, fmt.Errorf("%s does not exist", clean(prefix)))
	}
	v := &topView{a: a, o: o, m: m, t: t, prefix: prefix, scanner: locks.NewScanner(t, prefix, o.bounds)}
	if !a.JSON {
		if s, ok := a.openScreen(); ok {
			v.screen = s
			defer s.stop()
		}
	}
	return a.plain(clean(prefix), v.run(ctx))
}

// topView is a run of top.
type topView struct {
	a       *App
	o       topOptions
	m       *session.Manager
	t       *locks.Tree
	prefix  string
	scanner *locks.Scanner
	screen  *screen // nil: print

	rows     []locks.Row        // of the last round that was complete
	broken   *locks.BrokenError // why the last round was not
	scanned  locks.Scanned
	requests int64
	shown    string // what the screen shows goes by it: state and size
}

var errQuit = errors.New("a key ended it")

// run shows rounds until there were enough, a key ends it, or ctx ends.
func (v *topView) run(ctx context.Context) error {
	ctx, quit := context.WithCancelCause(ctx)
	defer quit(nil)
	if v.screen != nil {
		go v.readKeys(ctx, quit)
		v.draw()
	}
	budget := 0
	for round := 1; ; round++ {
		next := time.NewTimer(v.o.interval)
		err := v.round(ctx, budget)
		if v.broken = nil; v.o.rounds == 0 && errors.As(err, &v.broken) {
			err = nil // it goes on with what it has
		}
		if err == nil {
			v.show()
			if round == v.o.rounds {
				next.Stop()
				return nil
			}
			err = v.pause(ctx, next.C)
		}
		next.Stop()
		switch {
		case errors.Is(context.Cause(ctx), errQuit):
			return nil
		case ctx.Err() != nil:
			return withCode(codeOf(ctx, ctx.Err()), nil)
		case err != nil:
			return err
		}
		budget = v.o.budget()
	}
}

func (v *topView) readKeys(ctx context.Context, quit context.CancelCauseFunc) {
	for {
		select {
		case key := <-v.screen.keys:
			if quits(key) {
				quit(errQuit)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// refresh is how often the size of the terminal and the connection are looked at.
const refresh = 200 * time.Millisecond

// round makes one round. Meanwhile the screen follows the size of the terminal and the connection.
func (v *topView) round(ctx context.Context, budget int) error {
	before := v.t.Requests()
	var first []string
	for _, r := range v.rows[:min(len(v.rows), v.limit())] {
		first = append(first, r.Path)
	}
	done := make(chan error, 1)
	go func() { done <- v.scanner.Round(ctx, budget, first) }()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			v.requests = v.t.Requests() - before
			if err == nil {
				v.rows, v.scanned = v.scanner.Rows(), v.scanner.Scanned()
			}
			return err
		case <-tick.C:
			v.redraw()
		}
	}
}

// pause waits for the next round.
func (v *topView) pause(ctx context.Context, next <-chan time.Time) error {
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			v.redraw()
		}
	}
}

// headerLines are the lines of a page before the locks: two, an empty one, and the headings of the table.
const headerLines = 4

// limit returns how many of the locks to show. On a terminal that is as many as fit, with a line for the others.
func (v *topView) limit() int {
	most, room := len(v.rows), math.MaxInt
	switch {
	case v.screen != nil:
		_, height := v.screen.size()
		room = height - headerLines
		if v.o.rows > 0 {
			most = min(most, v.o.rows)
		}
	case v.o.rows > 0:
		return min(most, v.o.rows)
	default:
		most = min(most, 20)
		if height := v.a.height(); height > 0 {
			room = height - headerLines - 2 // an empty line, and that of the cursor
		}
	}
	if most < len(v.rows) || most > room {
		room-- // for how many more there are
	}
	return max(1, min(most, room))
}

// show shows the last round.
func (v *topView) show() {
	switch {
	case v.screen != nil:
		v.draw()
	case v.a.JSON:
		_ = v.a.printJSON(v.json())
	default:
		for _, line := range v.page(time.Now()) {
			fmt.Fprintln(v.a.Out, line)
		}
		fmt.Fprintln(v.a.Out)
	}
}

func (v *topView) draw() {
	v.shown = v.situation()
	v.screen.draw(v.page(time.Now()))
}

// redraw draws if the size of the terminal or the connection has changed.
func (v *topView) redraw() {
	if v.screen != nil && v.situation() != v.shown {
		v.draw()
	}
}

func (v *topView) situation() string {
	w, h := v.screen.size()
	return fmt.Sprint(w, h, v.m.State())
}

// page returns the lines to show.
func (v *topView) page(now time.Time) []string {
	held, waiting := 0, 0
	for _, r := range v.rows {
		if n := r.Waiting(); len(r.Contenders) > n {
			held++
		}
		waiting += r.Waiting()
	}
	head := fmt.Sprintf("turnstile top %s  %s  %s in use, %d held, %s",
		clean(v.prefix), now.Local().Format("15:04:05Z07:00"), count(len(v.rows), "lock", "locks"), held, count(waiting, "waiter", "waiters"))
	lines := []string{head, v.cost(now)}
	lines = append(lines, "")
	if v.scanned.Directories == 0 {
		return append(lines, "Reading …")
	}
	if v.scanned.Missing {
		return append(lines, clean(v.prefix)+" does not exist any more.")
	}
	t := newTable("PATH", "KIND", "HOLDER", "QUEUED", "WAITING", "CHANGES/s")
	shown := min(len(v.rows), v.limit())
	for _, r := range v.rows[:shown] {
		t.row(append(lockCells(r.Lock, now), fmt.Sprintf("%.1f", r.Rate))...)
	}
	lines = append(lines, t.lines()...)
	if more := len(v.rows) - shown; more > 0 {
		lines = append(lines, "and "+count(more, "more lock", "more locks"))
	}
	return lines
}

// cost says what the last round has cost, and what is wrong.
func (v *topView) cost(now time.Time) string {
	if v.broken != nil {
		return fmt.Sprintf("What is shown is old: %s. Does a longer --timeout help?", clean(v.broken.Error()))
	}
	if s := v.m.State(); s != session.Connected {
		return fmt.Sprintf("NO CONNECTION (%s): what is shown is old. Press q to end.", s)
	}
	text := fmt.Sprintf("%s in the last round, one every %v; %s, the oldest reading is %s old",
		count(int(v.requests), "request", "requests"), v.o.interval, count(v.scanned.Directories, "directory", "directories"), ago(v.scanned.Oldest, now))
	if v.scanned.Directories == 0 {
		text = "one round every " + v.o.interval.String()
	}
	if n := len(v.scanned.Unread); n > 0 {
		text += fmt.Sprintf("; no rights to read %s", count(n, "directory", "directories"))
	}
	if v.scanned.Full {
		text += "; there may be more (--max)"
	}
	return text
}

// topJSON is a round of "top --json".
type topJSON struct {
	Time        time.Time      `json:"time"`
	Requests    int64          `json:"requests"`
	Directories int            `json:"directories"`
	Oldest      float64        `json:"oldest"`
	Locks       []topLockJSON  `json:"locks"`
	Unread      []locks.Unread `json:"unread"`
	Complete    bool           `json:"complete"`
	Stale       string         `json:"stale,omitempty"`
}

type topLockJSON struct {
	lockJSON
	Rate float64 `json:"changesPerSecond"`
}

func (v *topView) json() topJSON {
	now := time.Now()
	j := topJSON{
		Time: now.UTC(), Requests: v.requests, Directories: v.scanned.Directories,
		Oldest: now.Sub(v.scanned.Oldest).Seconds(), Locks: []topLockJSON{},
		Unread: append([]locks.Unread{}, v.scanned.Unread...), Complete: !v.scanned.Full,
	}
	if v.broken != nil {
		j.Stale = v.broken.Error()
	}
	most := len(v.rows)
	if v.o.rows > 0 {
		most = min(most, v.o.rows)
	}
	for _, r := range v.rows[:most] {
		j.Locks = append(j.Locks, topLockJSON{lockOf(r.Lock), r.Rate})
	}
	return j
}
