package supervise

import "testing"

func TestParseStat(t *testing.T) {
	for stat, want := range map[string]process{
		"7 (sh) S 1 42 7 0":                               {pid: 7, parent: 1, group: 42, session: 7, name: "sh"},
		"7 (a) Z 1 42) R 3 4 7":                           {pid: 7, parent: 3, group: 4, session: 7, name: "a) Z 1 42"},
		"7 (a (b)) D 1 42 7 0":                            {pid: 7, parent: 1, group: 42, session: 7, name: "a (b)"},
		"7 (sh) Z 1 42 7 0":                               {pid: 7, parent: 1, group: 42, session: 7, name: "sh", dead: true},
		"7 (sh) X 1 42 7 0":                               {pid: 7, parent: 1, group: 42, session: 7, name: "sh", dead: true},
		"7 (sh) Z 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0": {pid: 7, parent: 1, group: 42, session: 7, name: "sh", dead: true},
		"7 (sh) Z 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0": {pid: 7, parent: 1, group: 42, session: 7, name: "sh"},
		"7 (a) S 1 42 7) Z 1 42 7":                        {pid: 7, parent: 1, group: 42, session: 7, name: "a) S 1 42 7", dead: true},
	} {
		if got, ok := parseStat([]byte(stat)); !ok || got != want {
			t.Errorf("%q: %+v, %v", stat, got, ok)
		}
	}
	for _, stat := range []string{"", "7", "7 (sh", "7 (sh)", "7 (sh) S", "7 (sh) S 1", "7 (sh) S 1 42", "x (sh) S 1 42 7", ")7 (S 1 42 7"} {
		if got, ok := parseStat([]byte(stat)); ok {
			t.Errorf("%q: %+v", stat, got)
		}
	}
}
