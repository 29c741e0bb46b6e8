package usage

import "testing"

func TestAbove(t *testing.T) {
	base := Usage{Goroutines: 10, Files: 10, Watches: 1, Nodes: 5, Ephemerals: 1, Sessions: 2, Conns: 3}
	if more := base.Above(base); more != "" {
		t.Errorf("the same is more: %s", more)
	}
	for what, grow := range map[string]func(*Usage){
		"goroutines: 11, not 10":    func(u *Usage) { u.Goroutines++ },
		"open files: 11, not 10":    func(u *Usage) { u.Files++ },
		"watches: 2, not 1":         func(u *Usage) { u.Watches++ },
		"nodes: 6, not 5":           func(u *Usage) { u.Nodes++ },
		"ephemeral nodes: 2, not 1": func(u *Usage) { u.Ephemerals++ },
		"sessions: 3, not 2":        func(u *Usage) { u.Sessions++ },
		"connections: 4, not 3":     func(u *Usage) { u.Conns++ },
	} {
		more := base
		grow(&more)
		if got := more.Above(base); got != what {
			t.Errorf("%q, want %q", got, what)
		}
	}
}
