package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The world of TestKills. The ticks are closer than sessions live, so replicas are late whenever one was
// killed.
const (
	replicas     = 4
	every        = 250 * time.Millisecond
	killsFor     = time.Minute
	mostOfATry   = 200 * time.Millisecond // of the job
	realTimeout  = 1500 * time.Millisecond
	replicaEnv   = "TURNSTILE_TEST_REPLICA"
	replicaUsage = "servers journal number start ahead" // start: of the schedule; ahead: how far its clock is
)

// jobsOfKills are the jobs that each replica runs, by the name in their path and in the journal.
var jobsOfKills = map[string][]schedule.Option{
	"least": nil,
	"most":  {schedule.WithMaxTries(1)},
}

// TestKills kills processes that run jobs, and the leader of three real servers, for a minute. With at least
// once, each tick is done, and with at most once no tick is begun twice.
func TestKills(t *testing.T) {
	longtest.Only(t)
	servers := zktest.StartReal(t, zktest.Nodes(3), zktest.TickTime(500*time.Millisecond))
	journal := filepath.Join(t.TempDir(), "journal")
	start := time.Now().Truncate(every)
	w := &killedWorld{t: t, args: func(i int) []string {
		ahead := time.Duration(i-replicas/2) * 2 * every
		return []string{servers.ConnectString(), journal, strconv.Itoa(i), start.Format(time.RFC3339Nano), ahead.String()}
	}}
	t.Cleanup(w.killAll)
	for i := range replicas {
		w.start(i)
	}
	kills, leaders := 0, 0
	for end := time.Now().Add(killsFor); time.Now().Before(end); {
		time.Sleep(500*time.Millisecond + rand.N(2*time.Second)) // any moment will do
		i := rand.N(replicas)
		if kills%3 > 0 { // one that is at work, if it is not done by now
			i = lastBegan(t, journal, i)
		}
		w.kill(i)
		w.start(i)
		if kills++; kills%15 != 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		leader, err := servers.Leader(ctx)
		if err == nil {
			err = errors.Join(servers.Kill(leader), servers.Start(ctx, leader), servers.WaitReady(ctx))
		}
		cancel()
		must(t, err)
		leaders++
	}
	w.endAll()
	longtest.Covered(t, "%d kills of replicas, %d of leaders", kills, leaders)
	lines, err := os.ReadFile(journal)
	must(t, err)
	m := testserver.Connect(t, servers.ConnectString())
	for name, opts := range jobsOfKills {
		last, err := newJob(t, m, "/jobs/"+name, opts...).Last(patient(t))
		must(t, err)
		checkJournal(t, name, string(lines), start, last)
	}
}

// lastBegan returns the number of the replica that has begun a job last, or else the given one.
func lastBegan(t *testing.T, journal string, none int) int {
	t.Helper()
	lines, err := os.ReadFile(journal)
	if errors.Is(err, os.ErrNotExist) {
		return none
	}
	must(t, err)
	for line := range strings.Lines(string(lines)) {
		if words := strings.Fields(line); len(words) == 4 && words[1] == "began" {
			none, err = strconv.Atoi(words[3])
			must(t, err)
		}
	}
	return none
}

// checkJournal checks each tick of a job up to its record.
func checkJournal(t *testing.T, job, journal string, start time.Time, last schedule.Record) {
	t.Helper()
	began, ended := make(map[string]int), make(map[string]int)
	for line := range strings.Lines(journal) {
		switch words := strings.Fields(line); {
		case len(words) != 4:
			t.Fatalf("line %q of the journal", line)
		case words[0] == job && words[1] == "began":
			began[words[2]]++
		case words[0] == job && words[1] == "ended":
			ended[words[2]]++
		}
	}
	ticks, again, never := 0, 0, 0
	for tick := start.Add(every); !tick.After(last.Tick); tick = tick.Add(every) {
		ticks++
		name := tick.UTC().Format(time.RFC3339Nano)
		if began[name] > 1 {
			again++
		}
		if ended[name] == 0 {
			never++
		}
		switch {
		case job == "most" && began[name] > 1:
			t.Errorf("%s: tick %s began %d times", job, name, began[name])
		case job == "least" && ended[name] == 0 && (last.Done || tick.Before(last.Tick)):
			t.Errorf("%s: tick %s began %d times and was never done", job, name, began[name])
		}
	}
	if ticks == 0 {
		t.Errorf("%s: no tick was begun", job)
	}
	longtest.Covered(t, "%s: %d ticks, of which %d began more than once and %d were never done", job, ticks, again, never)
}

// killedWorld has the processes of TestKills.
type killedWorld struct {
	t    *testing.T
	args func(i int) []string
	now  [replicas]*exec.Cmd
	ends [replicas]io.Closer // its standard input, whose end tells it to end
}

func (w *killedWorld) start(i int) {
	cmd := exec.Command(os.Args[0], w.args(i)...)
	cmd.Env = append(os.Environ(), replicaEnv+"=1")
	cmd.Stderr = os.Stderr
	end, err := cmd.StdinPipe()
	must(w.t, err)
	must(w.t, cmd.Start())
	w.now[i], w.ends[i] = cmd, end
}

func (w *killedWorld) kill(i int) {
	_ = w.now[i].Process.Kill()
	_ = w.now[i].Wait() // killed
}

func (w *killedWorld) killAll() {
	for i, cmd := range w.now {
		if cmd != nil {
			w.kill(i)
		}
	}
}

// endAll has the processes end by themselves.
func (w *killedWorld) endAll() {
	for i, cmd := range w.now {
		_ = w.ends[i].Close()
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("replica %d: %v", i, err)
		}
		w.now[i] = nil
	}
}

// replicaMain is a process of TestKills.
func replicaMain() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends it, or has ended
		cancel()
	}()
	if err := replica(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

func replica(ctx context.Context, args []string) error {
	if len(args) != len(strings.Fields(replicaUsage)) {
		return errors.New("usage: " + replicaUsage)
	}
	start, err := time.Parse(time.RFC3339Nano, args[3])
	if err != nil {
		return err
	}
	ahead, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	m, err := session.Open(args[0], session.WithTimeout(realTimeout), session.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer m.Close()
	var jobs sync.WaitGroup
	errs := make(chan error, len(jobsOfKills))
	for name, opts := range jobsOfKills {
		job, err := schedule.New(m, "/jobs/"+name, opts...)
		if err != nil {
			return err
		}
		jobs.Go(func() {
			r := scheduled{job: job, name: name, number: args[2], journal: journal, ahead: ahead}
			errs <- r.runAll(ctx, start)
		})
	}
	jobs.Wait()
	return errors.Join(<-errs, <-errs)
}

// scheduled is a job of a replica.
type scheduled struct {
	job     *schedule.Job
	name    string
	number  string // of the replica
	journal *os.File
	ahead   time.Duration // is the clock
}

// runAll runs the tick that was begun last, if it is not done, and then one after the other.
func (r scheduled) runAll(ctx context.Context, start time.Time) error {
	last, err := r.job.Last(ctx)
	if err != nil {
		return orEnded(ctx, err)
	}
	tick := last.Tick
	if tick.IsZero() {
		tick = start.Add(every)
	}
	for ctx.Err() == nil {
		select {
		case <-time.After(time.Until(tick.Add(-r.ahead))):
		case <-ctx.Done():
			return nil
		}
		for {
			_, err := r.job.Run(ctx, tick, r.work(tick))
			if err == nil {
				break
			}
			if !errors.Is(err, session.ErrLost) {
				return orEnded(ctx, err)
			}
		}
		tick = tick.Add(every)
	}
	return nil
}

func orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// work is the job of a tick. A try that is not to go on is an error.
func (r scheduled) work(tick time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.note("began", tick); err != nil {
			return err
		}
		select {
		case <-time.After(rand.N(mostOfATry)):
			return r.note("ended", tick)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// note adds a line to the journal of all replicas, by one write. A kill leaves all of it or nothing.
func (r scheduled) note(what string, tick time.Time) error {
	words := []string{r.name, what, tick.UTC().Format(time.RFC3339Nano), r.number}
	_, err := r.journal.WriteString(strings.Join(words, " ") + "\n")
	return err
}
