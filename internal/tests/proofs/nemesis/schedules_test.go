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
	quick       bool // the same form is among the quick tests
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
	full bool
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

// row is what came of a schedule.
type row struct {
	what       string // the lock, if each has a row
	faults     int
	holds      int
	violations []string // more was held at once than may be
	other      []string // whatever else is wrong
	figures    string
	rival      bool // it fails no test
	schedule   string
	made       string
}

// report tells what came of a schedule, in full but for repetitions, and fails the test if something is wrong.
func (t *trial) report(r row) {
	t.Helper()
	const most = 10
	for _, list := range [][]string{r.violations, r.other} {
		for i, f := range list {
			if i == most {
				t.Logf("%s: … %d in all", r.what, len(list))
				break
			}
			t.Logf("%s: %s", r.what, f)
		}
	}
	said := fmt.Sprintf("%d faults, %d holds, %d violations, %d other findings; %s", r.faults, r.holds, len(r.violations), len(r.other), r.figures)
	if !r.rival && len(r.violations)+len(r.other) > 0 {
		t.Errorf("%s: %s", r.what, said)
	} else {
		t.Logf("%s: %s", r.what, said)
	}
	r.schedule = t.schedule.String()
	results.Lock()
	defer results.Unlock()
	results.rows = append(results.rows, r)
}

// results are the rows of all schedules that have run.
var results struct {
	sync.Mutex
	rows []row
}

// TestNemesis runs the schedules. Everything else here is about the judgement of what they do.
func TestNemesis(t *testing.T) {
	names := strings.Split(*scheduleFlag, ",")
	everything := *scheduleFlag == "all"
	known := *scheduleFlag == ""
	t.Cleanup(func() { // when all of them are over
		tell(t, results.rows)
	})
	for _, s := range schedules {
		full := everything || slices.Contains(names, s.group) || slices.Contains(names, s.String())
		known = known || full
		if !full && (*scheduleFlag != "" || !s.short || !s.quick && !longtest.On()) {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			if s.beside || !full {
				t.Parallel()
			}
			s.run(&trial{t, s, full})
		})
	}
	if !known {
		t.Errorf("no schedule %q; there are %v", *scheduleFlag, schedules)
	}
}

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
	t.Logf("\n%s", table(rows, ""))
	if !*writeFlag || t.Failed() {
		return
	}
	page := filepath.Join("..", "..", "..", "..", "docs", "measured", "nemesis.md")
	stamp, err := report.Now(filepath.Dir(page))
	for i := range rows {
		rows[i].made = stamp.String()
	}
	old, errRead := os.ReadFile(page)
	if err == nil && errRead == nil {
		err = report.Section(page, "nemesis", table(rows, string(old)))
	}
	if err != nil || errRead != nil {
		t.Error(err, errRead)
	}
}

const head = `| schedule | lock | faults | holds | violations | other findings | figures | made |
|---|---|---|---|---|---|---|---|
`

// table returns the rows, and those of an older page whose schedules have not been run.
func table(rows []row, old string) string {
	var b strings.Builder
	b.WriteString(head)
	again := make(map[string]bool)
	for _, r := range rows {
		again[r.schedule] = true
	}
	_, older, _ := strings.Cut(old, head)
	for line := range strings.Lines(older) {
		rest, ok := strings.CutPrefix(line, "| ")
		if !ok {
			break
		}
		if name, _, _ := strings.Cut(rest, " |"); !again[name] {
			b.WriteString(line)
		}
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %s | %s |\n",
			r.schedule, r.what, r.faults, r.holds, len(r.violations), len(r.other), r.figures, r.made)
	}
	return b.String()
}
