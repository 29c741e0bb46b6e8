package interop_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A journal is a directory in which the clients of a lock write down what they do, outside
// of ZooKeeper. It holds
//
//   - log: each client adds "enter <client> <mode>" once it has the lock, and "leave <client>
//     <mode>" before it gives it back, each in one write to the end of the file. The order of
//     the lines is the order of the writes, across processes, and a client is inside for no
//     longer than it has the lock.
//   - gate: no client leaves before this file is there.
type journal struct {
	dir  string
	gate chan struct{} // closed when the file is there: for clients in this process
}

const (
	exclusive = "exclusive" // modes
	shared    = "shared"
)

func newJournal(t *testing.T) *journal {
	t.Helper()
	j := &journal{dir: t.TempDir(), gate: make(chan struct{})}
	j.create(t, "log", "")
	return j
}

func (j *journal) file(name string) string { return filepath.Join(j.dir, name) }

func (j *journal) create(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.WriteFile(j.file(name), []byte(content), 0o600))
}

// open lets clients leave.
func (j *journal) open(t *testing.T) {
	t.Helper()
	j.create(t, "gate", "")
	close(j.gate)
}

// visit is what a client does while it has the lock.
func (j *journal) visit(ctx context.Context, client, mode string) error {
	if err := j.append("enter", client, mode); err != nil {
		return err
	}
	select {
	case <-j.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return j.append("leave", client, mode)
}

func (j *journal) append(what, client, mode string) error {
	f, err := os.OpenFile(j.file("log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %s\n", what, client, mode)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// event is a line of the log.
type event struct{ what, client, mode string }

func (j *journal) events(t *testing.T) []event {
	t.Helper()
	b, err := os.ReadFile(j.file("log"))
	must(t, err)
	var all []event
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) != 3 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q in the log", line)
		}
		all = append(all, event{words[0], words[1], words[2]})
	}
	return all
}

// inside returns the clients that have entered and not left.
func inside(events []event) []event {
	var in []event
	for _, e := range events {
		in = apply(in, e)
	}
	return in
}

func apply(in []event, e event) []event {
	if e.what == "enter" {
		return append(in, e)
	}
	i := slices.IndexFunc(in, func(o event) bool { return o.client == e.client && o.mode == e.mode })
	return slices.Delete(in, i, i+1)
}

// replay reads a log by the rule of all locks: an exclusive holder is alone, and there are no more
// than limit others.
func replay(events []event, limit int) (entries int, fouls []string) {
	var in []event
	for _, e := range events {
		in = apply(in, e)
		if e.what != "enter" {
			continue
		}
		entries++
		lone := slices.ContainsFunc(in, func(o event) bool { return o.mode == exclusive })
		if lone && len(in) > 1 || len(in) > limit {
			fouls = append(fouls, fmt.Sprintf("together: %v", in))
		}
	}
	return entries, fouls
}

// firstVisit returns where in the log a client enters and leaves for the first time.
func firstVisit(events []event, client string) (enter, leave int) {
	find := func(what string) int {
		return slices.IndexFunc(events, func(e event) bool { return e.what == what && e.client == client })
	}
	return find("enter"), find("leave")
}

// The other tests rely on this: the log of a lock that does not exclude is not accepted.
func TestReplayFindsFouls(t *testing.T) {
	t.Parallel()
	enter := func(client, mode string) event { return event{"enter", client, mode} }
	leave := func(client, mode string) event { return event{"leave", client, mode} }
	for name, tt := range map[string]struct {
		events []event
		limit  int
		fouls  int
	}{
		"one after the other":    {[]event{enter("a", exclusive), leave("a", exclusive), enter("b", exclusive)}, 9, 0},
		"two exclusive":          {[]event{enter("a", exclusive), enter("b", exclusive)}, 9, 1},
		"a reader and a writer":  {[]event{enter("a", shared), enter("b", exclusive)}, 9, 1},
		"a writer and a reader":  {[]event{enter("a", exclusive), enter("b", shared)}, 9, 1},
		"two readers":            {[]event{enter("a", shared), enter("b", shared)}, 9, 0},
		"two of two":             {[]event{enter("a", shared), enter("b", shared)}, 2, 0},
		"three of two":           {[]event{enter("a", shared), enter("b", shared), enter("c", shared)}, 2, 1},
		"two of two, in turn":    {[]event{enter("a", shared), enter("b", shared), leave("a", shared), enter("c", shared)}, 2, 0},
		"a writer after readers": {[]event{enter("a", shared), enter("b", shared), leave("a", shared), leave("b", shared), enter("c", exclusive)}, 9, 0},
	} {
		if _, fouls := replay(tt.events, tt.limit); len(fouls) != tt.fouls {
			t.Errorf("%s: fouls %q, want %d", name, fouls, tt.fouls)
		}
	}
}
