package callout

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// userCalls calls functions of the user that must not cost anybody a lock: hooks and BackOffs. This is the
// only way in which they are called.
//
// A call costs about 1.2 µs more than in the goroutine of the caller (BenchmarkUserCall). An uncontended lock and
// unlock with a hook of each kind makes 13 calls. On a server of this process that took about 1.03 of the time
// without hooks when they ran in the goroutine of the caller, and takes about 1.2 (BenchmarkHooks of zklock).
type userCalls struct {
	workers workers // of the manager
	log     *slog.Logger

	mu       sync.Mutex
	reported map[string]report // by the name of the function
}

// report is what the log has of the failures of a function.
type report struct {
	at   time.Time // of the last line
	more int       // failures since then
}

// reportEvery is how often the log has a line about one function.
const reportEvery = time.Minute

// call calls f, and reports whether f has returned. Otherwise the log says why.
func (u *userCalls) call(what string, f func()) (returned bool) {
	bad := apart(u.workers.do, f)
	if bad != nil {
		u.report(what, bad)
	}
	return bad == nil
}

// mishap is how a function of the user has ended if it has not returned.
type mishap struct {
	panicked any // nil if it has called runtime.Goexit
	stack    []byte
}

// apart calls a function of the user in another goroutine, which begin starts. The function can end that
// goroutine by runtime.Goexit, and nothing in the same goroutine survives that. apart waits until the
// function has ended, and returns nil if it has returned.
func apart(begin func(func()), f func()) (bad *mishap) {
	ended := make(chan struct{})
	begin(func() {
		defer close(ended)
		returned := false
		defer func() {
			if !returned {
				bad = &mishap{recover(), debug.Stack()} // recover returns nil after Goexit
			}
		}()
		f()
		returned = true
	})
	<-ended
	return bad
}

func (u *userCalls) report(what string, bad *mishap) {
	now := time.Now()
	u.mu.Lock()
	last := u.reported[what]
	due := last.at.IsZero() || now.Sub(last.at) >= reportEvery
	if u.reported == nil {
		u.reported = make(map[string]report)
	}
	if due {
		u.reported[what] = report{at: now}
	} else {
		u.reported[what] = report{last.at, last.more + 1}
	}
	u.mu.Unlock()
	if !due || u.log == nil {
		return
	}
	how := []any{"function", what, "stack", string(bad.stack), "more", last.more}
	if bad.panicked == nil {
		u.log.Error("a function of the program has called runtime.Goexit; turnstile goes on without it", how...)
		return
	}
	u.log.Error("a function of the program has panicked; turnstile goes on without it",
		append(how, "panic", fmt.Sprint(bad.panicked))...)
}
