//go:build linux

package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// schedule is what happens to servers, and what has to be true all the same.
type schedule struct {
	group, name string
	short       bool // continuous integration runs it, in a short form
	beside      bool // it waits most of the time, so that others run beside it
	run         func(*trial)
}

func (s schedule) String() string { return s.group + "/" + s.name }

// schedules are all that there are.
var schedules = slices.Concat(attacks, restartSchedules, backupSchedules, diskSchedules, clockSchedules, outageSchedules)

// trial is a run of a schedule.
type trial struct {
	*testing.T
	schedule
	full    bool
	faults  int
	figures []string // for the table
}

// length returns how long to repeat something: a short time in the short form, and a longer one in full.
func (t *trial) length(short, full time.Duration) time.Duration {
	switch {
	case *forFlag > 0:
		return *forFlag
	case t.full:
		return full
	default:
		return short
	}
}

func (t *trial) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// figure keeps what is worth a place in the table.
func (t *trial) figure(format string, args ...any) {
	t.figures = append(t.figures, fmt.Sprintf(format, args...))
}

// report tells what came of a schedule, in full but for repetitions, and fails the test if something is wrong, unless
// that may be.
func (t *trial) report(what string, holds int, v verdict, mayFail bool) {
	t.Helper()
	const most = 10
	for _, list := range [][]string{v.violations, v.other} {
		for _, f := range list[:min(most, len(list))] {
			t.Logf("%s: %s", what, f)
		}
	}
	figures := strings.Join(t.figures, "; ")
	t.Logf("%s: %d faults, %d holds, %d violations, %d other findings; %s", what, t.faults, holds, len(v.violations), len(v.other), figures)
	if !mayFail && len(v.violations)+len(v.other) > 0 {
		t.Errorf("%s: something is wrong", what)
	}
	results.Lock()
	defer results.Unlock()
	results.rows = append(results.rows, row{t.schedule.String(), holds, fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %s |",
		t.schedule, what, t.faults, holds, len(v.violations), len(v.other), figures)})
	t.figures = nil
}

// row is a row of the table, without the last column.
type row struct {
	schedule string
	holds    int
	text     string
}

// results are the rows of all schedules that have run.
var results struct {
	sync.Mutex
	rows []row
}

// TestNemesis runs the schedules. Everything else here is about the judgement of what they do.
func TestNemesis(t *testing.T) {
	names := strings.Split(*scheduleFlag, ",")
	known, shorts := *scheduleFlag == "", 0
	t.Cleanup(func() { tell(t, results.rows) }) // when all of them are over
	for _, s := range schedules {
		full := *scheduleFlag == "all" || slices.Contains(names, s.group) || slices.Contains(names, s.String())
		known = known || full
		if s.short {
			shorts++
		}
		if !full && (*scheduleFlag != "" || !s.short || !longtest.On() || *turnFlag >= 0 && shorts%3 != *turnFlag%3) {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			if s.beside || !full {
				t.Parallel()
			}
			s.run(&trial{T: t, schedule: s, full: full})
		})
	}
	if !known {
		t.Errorf("no schedule %q; there are %v", *scheduleFlag, schedules)
	}
}

const page = "../../../../docs/measured/nemesis.md"

// tell prints the table, and writes it if that was asked for.
func tell(t *testing.T, rows []row) {
	covered := make(map[string]int)
	for _, r := range rows {
		covered[r.schedule] += r.holds
	}
	for _, s := range schedules {
		if n, ok := covered[s.String()]; ok {
			longtest.Covered(t, "%s: %d holds", s, n)
		}
	}
	t.Logf("\n%s", table(rows, "", ""))
	if !*writeFlag || t.Failed() {
		return
	}
	old, err := os.ReadFile(page)
	stamp, errNow := report.Now(filepath.Dir(page))
	if err != nil || errNow != nil {
		t.Fatal(err, errNow)
	}
	if err := report.Section(page, "nemesis", table(rows, string(old), stamp.String())); err != nil {
		t.Error(err)
	}
}

const head = `| schedule | lock | faults | holds | violations | other findings | figures | made |
|---|---|---|---|---|---|---|---|
`

// table returns the rows, behind those of an older page whose schedules have not been run.
func table(rows []row, old, made string) string {
	var b strings.Builder
	b.WriteString(head)
	_, older, _ := strings.Cut(old, head)
	for line := range strings.Lines(older) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(line, "| "+r.schedule+" |") }) {
			b.WriteString(line)
		}
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "%s %s |\n", r.text, made)
	}
	return b.String()
}
