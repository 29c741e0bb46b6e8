//go:build linux || darwin || freebsd

package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

const (
	tick  = "2024-11-26T12:00:00Z"
	later = "2024-11-26T14:00:00+01:00" // 13:00 in UTC
)

// Of several machines one runs the command, and the others end with status 0. A command that fails leaves the
// tick open.
func TestRunOnce(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	run := func(tick string, code int, script string, flags ...string) *process {
		t.Helper()
		args := append([]string{"run", "-v", "--once", tick}, flags...)
		p := start(t, server(t), append(args, path, "--", "sh", "-c", script)...)
		p.wait(t, code)
		return p
	}
	run(tick, 7, "exit 7")
	p := run(tick, 0, `echo "$TURNSTILE_TICK $TURNSTILE_PATH"`)
	if want := tick + " " + path + "/lock\n"; p.stdout.String() != want {
		t.Errorf("stdout %q, want %q", p.stdout, want)
	}
	p = run(tick, 0, j.once("A"))
	if text := p.stderr.String(); !strings.Contains(text, "msg=\"not run\" outcome=done") || !strings.Contains(text, "done=true") {
		t.Errorf("stderr %q", text)
	}
	run(later, 0, "exit 0", "--wait=0")
	run(tick, codeSkipped, j.once("A"), "--wait=0")
	run("2024-11-26T15:00:00Z", 3, "exit 3", "--max-tries", "1")
	run("2024-11-26T15:00:00Z", 0, j.once("A"), "--max-tries", "1")
	run(time.Now().UTC().Add(time.Hour).Format(time.RFC3339), codeUsage, j.once("A"))
	if j.last(t, "A") >= 0 {
		t.Error("a tick was run that was not open")
	}
}

// A machine that waits takes over from one whose turnstile is killed. One that does not wait says so.
func TestRunOnceTakesOver(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	run := func(tick string, flags ...string) *process {
		return start(t, server(t), append(append([]string{"run", "--once", tick}, flags...), path, "--", "echo", "B")...)
	}
	first := hold(t, "--once", tick, path)
	try := run(later, "--wait=0")
	try.wait(t, codeBusy)
	try.prints(t, fmt.Sprintf("%s/lock is held by %s, in the queue for ", path, first.contender(t)))
	run(later, "--wait", "3s").wait(t, codeBusy)
	run(tick, "--wait=0").wait(t, codeOK) // the other one is at it
	second := run(tick)
	testserver.WaitChildren(t, path+"/lock", 2)
	first.signal(t, syscall.SIGKILL)
	second.wait(t, 0)
	second.prints(t, "B")
}

// A break leaves the tick open, and the statuses are those of run.
func TestRunOnceRevoked(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	p := hold(t, "--once", tick, path)
	start(t, server(t), "break", path+"/lock").wait(t, 0)
	p.wait(t, codeLost)
	again := start(t, server(t), "run", "--once", tick, path, "--", "echo", "B")
	again.wait(t, 0)
	again.prints(t, "B")
}

// A duration stands for the present time, truncated in UTC, and a date for the day in the zone of the machine.
func TestTickOf(t *testing.T) {
	now := time.Date(2024, 11, 26, 14, 59, 59, 1, time.FixedZone("x", 3600))
	for text, want := range map[string]string{
		"1h": "2024-11-26T13:00:00Z", "24h": "2024-11-26T00:00:00Z", "15m": "2024-11-26T13:45:00Z",
		"today": "2024-11-25T23:00:00Z", "2024-11-25": "2024-11-24T23:00:00Z",
		tick: tick, later: "2024-11-26T13:00:00Z", "2024-11-26T12:00:00.5Z": "2024-11-26T12:00:00.5Z",
	} {
		got, _, err := tickOf(text, now)
		if err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"7m", "5h", "25h", "0s", "-1h", "soon"} {
		if got, _, err := tickOf(text, now); codeOf(t.Context(), err) != codeUsage {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Each local day has a tick of its own, also one of 23 or 25 hours.
func TestTickOfLocalDays(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		testserver.Missing(t, err)
	}
	if !changesClocks(time.Date(2027, 7, 1, 0, 0, 0, 0, loc)) || changesClocks(time.Now().UTC()) {
		t.Error("a zone with summer time is not told from UTC") // in which a day of 24h is no local day, and is warned of
	}
	for d := range 365 {
		midnight := time.Date(2027, 1, 1+d, 0, 0, 0, 0, loc)
		if got, period, err := tickOf("today", midnight.Add(time.Second)); err != nil || period != day || !got.Equal(midnight) {
			t.Errorf("%v: %v, %v, %v", midnight, got, period, err)
		}
	}
}

// A tick that is left out since a later one has begun is told, by the status and by a message.
func TestRunOnceLeftOut(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	once := func(code int, text, tick string, flags ...string) {
		t.Helper()
		p := start(t, server(t), append(append([]string{"run", "--once", tick}, flags...), path, "--", "true")...)
		p.wait(t, code)
		p.prints(t, text)
	}
	once(0, "", later)
	once(codeSkipped, "was left out: 2024-11-26T13:00:00Z has begun since", tick)
	once(0, "", later)
	once(0, "", "2s")
	once(codeUsage, "does not divide the day", "7m")
	expect.NoError(t, expect.Err(testserver.Admin(t).Set(path+"/last", []byte("nonsense"), -1)))
	once(codeFailed, path+"/last: ", tick)
	start(t, server(t), "jobs", path).wait(t, codeNo)
}
