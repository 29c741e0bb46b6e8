package outages

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roundsEnv is set, to a number of rounds in a timeout, in the processes that are built with
// that number.
const roundsEnv = "TURNSTILE_OUTAGE_ROUNDS"

// beatFile has the constant that says how many rounds there are in a timeout.
const beatFile = "../../../clock/beat.go"

var roundsConst = regexp.MustCompile(`(?m)^(\troundPerTimeout = )(\d+)$`)

// rounds returns how many rounds in a timeout this test was built with.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(roundsEnv)
	if text == "" {
		m := roundsConst.FindStringSubmatch(beat(t))
		if m == nil {
			t.Fatalf("%s does not say how many rounds there are; mend the pattern", beatFile)
		}
		text = m[2]
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func beat(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(beatFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// interval is one row of the table from which the intervals of heartbeats were chosen.
type interval struct {
	Rounds  int
	Timeout time.Duration
	// While a lock is held, in a timeout.
	Writes, Requests float64
	// The longest in which no session was lost: first with a known tick, then with an unknown one.
	Outage, Commit [2]time.Duration
}

const (
	rowSessions = 60
	rowStep     = 250 * time.Millisecond
	rowTime     = 2 * time.Minute // with slow commits
)

// TestIntervals makes the table from which the intervals of heartbeats were chosen. Each
// number of rounds is a build of its own, since it is a constant.
func TestIntervals(t *testing.T) {
	if !*tableFlag {
		t.Log("a measurement of minutes, which promises nothing: make outages makes it")
		return
	}
	var table []interval
	for _, n := range []int{2, 3, 5, 10} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { table = append(table, intervalsOf(t, n)...) })
	}
	if *write {
		writeIntervals(t, table)
	}
}

const rowPrefix = "ROW "

// intervalsOf runs TestRow with that many rounds in a timeout.
func intervalsOf(t *testing.T, n int) (rows []interval) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout", "20m", "-v",
		"-overlay", overlay(t, n), "-run", "^TestRow$", ".")
	cmd.Env = append(os.Environ(), roundsEnv+"="+strconv.Itoa(n))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		_, text, found := strings.Cut(line, rowPrefix)
		if !found {
			continue
		}
		var r interval
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", r)
		rows = append(rows, r)
	}
	return rows
}

// overlay writes a beat.go with that many rounds, and the file that says what it replaces.
func overlay(t *testing.T, n int) string {
	t.Helper()
	old, err := filepath.Abs(beatFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "beat.go")
	text := roundsConst.ReplaceAllString(beat(t), "${1}"+strconv.Itoa(n))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{old: changed}})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRow measures with the intervals that it was built with.
func TestRow(t *testing.T) {
	if os.Getenv(roundsEnv) == "" {
		return // a process of TestIntervals
	}
	for _, timeout := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		r := interval{Rounds: rounds(t), Timeout: timeout}
		bubble(t, 0, func(w *world) {
			h := w.hold(1, timeout, learned)[0]
			sent := w.rateOf(h.session.ID(), 20, timeout)
			r.Writes, r.Requests = sent.write, sent.all()
		})
		for i, k := range []knowledge{learned, unknown} {
			r.Outage[i] = longest(timeout, func(d time.Duration) bool {
				return endure(t, 0, rowSessions, timeout, k, d).lost == 0
			})
			r.Commit[i] = longest(timeout, func(d time.Duration) bool {
				n := 0
				bubble(t, 0, func(w *world) {
					all := w.hold(rowSessions, timeout, k)
					w.server.SetCommitDelay(d)
					time.Sleep(rowTime)
					n = lost(all)
				})
				return n == 0
			})
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", rowPrefix, b)
	}
}

// longest returns the longest duration that is survived, in steps, below a limit; 0 if there is none.
func longest(limit time.Duration, survived func(time.Duration) bool) time.Duration {
	good, bad := 0, int(limit/rowStep)
	for bad-good > 1 {
		if mid := (good + bad) / 2; survived(time.Duration(mid) * rowStep) {
			good = mid
		} else {
			bad = mid
		}
	}
	return time.Duration(good) * rowStep
}
