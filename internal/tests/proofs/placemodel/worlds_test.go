package placemodel

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// may are the faults of a world, by their kinds.
type may = [kindsOfFaults]int8

// one is a caller of a client that wants one lock once.
func one(client, sort int8) caller {
	return caller{client: client, wants: []want{{0, sort}}, rounds: 1}
}

// local is a caller of the Local of a client.
func local(client, rounds int8) caller {
	return caller{client: client, wants: []want{{0, sortLock}}, local: true, rounds: rounds}
}

// down is a writer that may become a reader.
func down(client int8) caller {
	return caller{client: client, wants: []want{{0, sortWrite}}, down: sortRead, rounds: 1}
}

// joint is a caller of a MultiLock of two locks, and inOrder one that takes them one after the other.
func joint(client int8) caller {
	return caller{client: client, wants: []want{{0, sortLock}, {1, sortLock}}, joint: true, rounds: 1}
}

func inOrder(client int8) caller {
	return caller{client: client, wants: []want{{0, sortLock}, {1, sortLock}}, rounds: 1}
}

var (
	handsOver = &localRules{handovers: 1}
	keeps     = &localRules{lazy: true, handovers: 1}
)

// semaphores is a world of semaphores whose limit changes.
func semaphores(lib library, m model) model {
	m.configs, m.limits = lib.configs, limitsSet
	return m
}

// quickWorlds are small enough for the quick tests.
func quickWorlds(lib library) []model {
	return []model{
		{
			name: "two contenders", lag: 4, size: 2,
			programs: []caller{one(0, sortLock), one(1, sortLock)}, may: may{faultCut: 1, faultCancel: 1},
		},
		{
			name: "two contenders, and an operator", lag: 2, size: 2,
			programs: []caller{one(0, sortLock), one(1, sortLock)}, may: may{faultDelete: 1, faultChange: 1},
		},
		{
			name: "two of one session, and another", lag: 1, size: 2,
			programs: []caller{one(0, sortLock), one(0, sortLock), one(1, sortLock)},
			may:      may{faultDelete: 1},
		},
		{
			name: "a writer that becomes a reader", lag: 1, size: 3,
			programs: []caller{down(0), one(1, sortRead), one(2, sortWrite)},
		},
		{
			name: "hand-over", lag: 4, size: 2, local: handsOver,
			programs: []caller{local(0, 1), local(0, 1), one(1, sortLock)}, may: may{faultCancel: 1},
		},
		{
			name: "kept", lag: 1, size: 2, local: keeps,
			programs: []caller{local(0, 2), one(1, sortLock)}, may: may{faultCut: 1},
		},
		{
			name: "two MultiLocks", lag: 1, size: 2,
			programs: []caller{joint(0), joint(1)}, may: may{faultDelete: 1, faultCancel: 1},
		},
		semaphores(lib, model{
			name: "a limit lowered and raised", lag: 4, size: 2,
			programs: []caller{one(0, sortLease), one(1, sortLease)}, may: may{faultResize: 2},
		}),
	}
}

// fullWorlds are the others.
func fullWorlds(lib library) []model {
	two, three := []caller{one(0, sortLock), one(1, sortLock)}, []caller{one(0, sortLock), one(1,
		sortLock), one(2, sortLock)}
	mixed := []caller{one(0, sortLock), one(0, sortLock), one(1, sortLock)}
	leases := []caller{one(0, sortLease), one(1, sortLease), one(2, sortLease)}
	return []model{
		{name: "two contenders", lag: 4, size: 2, programs: two, may: may{faultCut: 2, faultCancel: 1}},
		{
			name: "two contenders", lag: 4, size: 2,
			programs: two, may: may{faultCut: 1, faultDelete: 1, faultChange: 1},
		},
		{name: "three contenders", lag: 4, size: 3, programs: three, may: may{faultCut: 1}},
		{name: "three contenders", lag: 2, size: 3, programs: three, may: may{faultLose: 1}},
		{
			name: "three contenders", lag: 2, size: 3,
			programs: three, may: may{faultDelete: 1, faultCancel: 1},
		},
		{
			name: "two of one session", lag: 4, size: 1,
			programs: mixed[:2], may: may{faultCut: 1, faultCancel: 1},
		},
		{name: "two of one session, and another", lag: 0, size: 2, programs: mixed, may: may{faultCut: 1}},
		{
			name: "two of one session, and another", lag: 2, size: 2,
			programs: mixed, may: may{faultDelete: 1, faultCancel: 1},
		},
		{
			name: "two of one session, and two of another", lag: 1, size: 2,
			programs: []caller{one(0, sortLock), one(0, sortLock), one(1, sortLock), one(1, sortLock)},
		},
		{
			name: "a writer and two readers", lag: 4, size: 3,
			programs: []caller{one(0, sortWrite), one(1, sortRead), one(2, sortRead)},
			may:      may{faultDelete: 1},
		},
		{
			name: "two writers and a reader", lag: 4, size: 3,
			programs: []caller{one(0, sortWrite), one(1, sortRead), one(2, sortWrite)},
			may:      may{faultDelete: 1},
		},
		{
			name: "a writer that becomes a reader", lag: 4, size: 2,
			programs: []caller{down(0), one(1, sortWrite)}, may: may{faultCut: 1},
		},
		{
			name: "a writer that becomes a reader", lag: 4, size: 3,
			programs: []caller{down(0), one(1, sortRead), one(2, sortWrite)},
		},
		{
			name: "a writer that becomes a reader", lag: 4, size: 2,
			programs: []caller{down(0), one(1, sortWrite)}, may: may{faultDelete: 1, faultCancel: 1},
		},
		{
			name: "hand-over", lag: 4, size: 2, local: handsOver,
			programs: []caller{local(0, 1), local(0, 1), one(1, sortLock)}, may: may{faultCut: 1},
		},
		{
			name: "hand-over", lag: 2, size: 2, local: handsOver,
			programs: []caller{local(0, 1), local(0, 1), one(1, sortLock)}, may: may{faultLose: 1,
				faultCancel: 1},
		},
		{
			name: "kept", lag: 4, size: 2, local: keeps,
			programs: []caller{local(0, 2), one(1, sortLock)}, may: may{faultCut: 1, faultCancel: 1},
		},
		{
			name: "kept", lag: 1, size: 2, local: keeps,
			programs: []caller{local(0, 2), one(1, sortLock)}, may: may{faultLose: 1, faultDelete: 1},
		},
		{
			name: "kept, with two callers", lag: 1, size: 2, local: keeps,
			programs: []caller{local(0, 2), local(0, 1), one(1, sortLock)}, may: may{faultCut: 1},
		},
		{
			name: "kept by both", lag: 4, size: 2, local: keeps,
			programs: []caller{local(0, 2), local(1, 2)}, may: may{faultCut: 1},
		},
		{
			name: "two MultiLocks", lag: 4, size: 2,
			programs: []caller{joint(0), joint(1)}, may: may{faultCut: 1},
		},
		{
			name: "two MultiLocks", lag: 1, size: 2,
			programs: []caller{joint(0), joint(1)}, may: may{faultLose: 1, faultDelete: 1},
		},
		{
			name: "a MultiLock, and two locks in order", lag: 4, size: 2,
			programs: []caller{joint(0), inOrder(1)}, may: may{faultCut: 1},
		},
		{name: "three MultiLocks", lag: 4, size: 3, programs: []caller{joint(0), joint(1), joint(2)}},
		semaphores(lib, model{
			name: "a limit lowered", lag: 0, early: true, size: 3,
			programs: leases, may: may{faultResize: 1},
		}),
		semaphores(lib, model{
			name: "a limit lowered", lag: 0, early: true, size: 2,
			programs: leases[:2], may: may{faultResize: 1, faultCut: 1},
		}),
		semaphores(lib, model{
			name: "a limit lowered", lag: 2, size: 2,
			programs: leases[:2], may: may{faultResize: 1, faultDelete: 1},
		}),
		semaphores(lib, model{
			name: "a limit lowered, and a caller that wants two", lag: 1, size: 2,
			programs: []caller{one(0, sortLease), one(1, sortLease2)}, may: may{faultResize: 2,
				faultCancel: 1},
		}),
	}
}

// Nothing goes wrong in any world, whatever happens there.
func TestPlaces(t *testing.T) {
	lib := libraryOf(t)
	worlds := longtest.Pick(quickWorlds, fullWorlds)(lib)
	rows := make([]string, len(worlds))
	began, states := time.Now(), 0
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) {
		for i, m := range worlds {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				m.rules, m.sorts = realRules(), lib.sorts
				start := time.Now()
				x := explore(&m)
				if x.wrong != "" {
					t.Errorf("%s:\n%s", x.wrong, x.schedule())
				}
				mu.Lock()
				defer mu.Unlock()
				states += len(x.parent)
				rows[i] = fmt.Sprintf("| %s | %s | %d | %s | %.1f |\n", m.name, m.misfortunes(), m.lag,
					thousands(len(x.parent)), time.Since(start).Seconds())
				t.Log(rows[i])
			})
		}
	})
	longtest.Covered(t, "%s states of places in %.0f s", thousands(states), time.Since(began).Seconds())
	if *write && !t.Failed() {
		head := "| world | what goes wrong | lag | states | seconds |\n|---|---|---:|---:|---:|\n"
		if err := report.Section("../../../../docs/places.md", "worlds", head+strings.Join(rows,
			"")); err != nil {
			t.Error(err)
		}
	}
}

// misfortunes says which faults a world has.
func (m *model) misfortunes() string {
	var all []string
	for i, word := range []string{"connection lost", "session lost", "caller gives up", "node deleted",
		"data changed", "limit set"} {
		switch n := m.may[i]; n {
		case 0:
		case 1:
			all = append(all, word)
		default:
			all = append(all, fmt.Sprintf("%s, %d times", word, n))
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, "; ")
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
