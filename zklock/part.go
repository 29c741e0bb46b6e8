package zklock

import "github.com/turnstile-go/turnstile/internal/queueplumbing"

func init() {
	queueplumbing.SetPart(func(m *Mutex) (queueplumbing.Part, bool) {
		part := queueplumbing.Part{Queue: m.q, Request: m.request()}
		if m.local != nil {
			part.Local = m.local
		}
		return part, m.kind != unfair
	})
	queueplumbing.Elect = func(mutex any) {
		m := mutex.(*Mutex)
		election := *m.kind
		election.Name = "election"
		election.Prefixes = append([]string{queueplumbing.Candidate + election.Prefixes[0]}, election.Prefixes...)
		m.kind = &election
	}
}
