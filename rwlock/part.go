package rwlock

import "github.com/turnstile-go/turnstile/internal/queueplumbing"

func init() {
	queueplumbing.SetPart(func(rw *RWMutex) (queueplumbing.Part, bool) {
		return rw.writer.part(), true
	})
	queueplumbing.SetPart(func(r Reader) (queueplumbing.Part, bool) {
		return r.rw.reader.part(), true
	})
}
