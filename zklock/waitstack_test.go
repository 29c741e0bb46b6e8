package zklock_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A goroutine keeps the stack that it has used below the frames in which it waits. So one that waits for a lock, which
// can be one of thousands, waits in few and small ones: it has returned out of all that decides.
func TestWaitNeedsLittleStack(t *testing.T) {
	dir := testserver.Path(t)
	holder, m := connect(t), connect(t)
	mx := newMutex(t, m, dir+"/m")
	rw, err := rwlock.New(m, dir+"/rw")
	must(t, err)
	theirs, err := rwlock.New(holder, dir+"/rw")
	must(t, err)
	must(t, newMutex(t, holder, dir+"/m").Lock(patient(t)))
	must(t, theirs.Lock(patient(t)))
	for name, lock := range map[string]func(context.Context) error{
		`zklock\.\(\*Mutex\)\.Lock`:    mx.Lock,
		`zklock\.\(\*Mutex\)\.Do`:      func(ctx context.Context) error { return mx.Do(ctx, func(context.Context) error { return nil }) },
		`rwlock\.\(\*RWMutex\)\.Lock`:  rw.Lock,
		`rwlock\.\(\*RWMutex\)\.RLock`: rw.RLock,
		`rwlock\.Reader\.Lock`:         rw.Reader().Lock,
	} {
		ctx, cancel := context.WithCancel(patient(t))
		waits := background(func() error { return lock(ctx) })
		zktest.Eventually(t, testserver.Patience, fmt.Sprintf("%s waits", name), func() bool {
			return waitsInHolds.MatchString(stackOf(t, regexp.MustCompile(name)))
		})
		cancel()
		if err := receive(t, name, waits); err == nil {
			t.Errorf("%s got a lock that another holds", name)
		}
	}
}

// waitsInHolds is the stack of a goroutine that waits for a lock: nothing else is between these functions.
var waitsInHolds = regexp.MustCompile(`^goroutine \d+ \[select[^\n]*\n` +
	`(?:\S+place\.\(\*attempt\)\.block\S*\n.*\n)?` +
	`\S+place\.\(\*Acquisition\)\.Wait\S*\n.*\n` +
	`\S+hold\.\(\*Holds\[\.\.\.\]\)\.lock\(`)

// stackOf returns the stack of the goroutine that has a function, or "".
func stackOf(t *testing.T, function *regexp.Regexp) string {
	t.Helper()
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for _, one := range strings.Split(string(all), "\n\n") {
		if function.MatchString(one) {
			return one
		}
	}
	return ""
}
