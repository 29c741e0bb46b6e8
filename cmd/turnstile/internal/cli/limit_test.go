package cli

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
)

// Resize lets waiters in, and resize --limit tells the limit and the leases.
func TestResize(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		pool := w.top + "/pool"
		w.call(t.Context(), "resize", pool, "2").want(t, codeNotFound, "does not exist")
		s, err := semaphore.New(w.manager(t), pool, 1)
		expect.NoError(t, err)
		first, err := s.Acquire(t.Context())
		expect.NoError(t, err)
		defer func() { _ = first.Release(t.Context()) }()
		second := make(chan *queue.Lease, 1)
		go func() {
			l, _ := s.Acquire(t.Context())
			second <- l
		}()
		w.says(t, "resize", "--limit", pool, pool+": semaphore, 1 of 1 leases taken, 1 holder")
		w.says(t, "resize", pool, "2", pool+": the limit is 2, it was 1.")
		l := <-second
		if l == nil {
			t.Fatal("the waiter was not let in")
		}
		w.says(t, "resize", "--limit", pool, pool+": semaphore, 2 of 2 leases taken (an operator has set the limit), 2 holders, 0 waiters")
		w.call(t.Context(), "resize", "--timeout", "4s", "--connect-timeout", "1s", pool, "1").want(t, codeBusy, "the limit is still 2", "2 of 2 leases taken")
		expect.NoError(t, l.Release(t.Context()))
		w.says(t, "resize", "--reset", pool, "1", "the limit is 1, it was 2")
		w.says(t, "resize", "--limit", pool, pool+": semaphore, 1 of 1 leases taken, 1 holder, 0 waiters")
		w.plant(t, "new", "")
		w.says(t, "resize", w.top+"/new", "7", "the limit is 7, no limit was on the servers before")
		w.says(t, "resize", "--limit", w.top+"/new", "0 of 7 leases taken (an operator has set the limit)")
	})
}

// says runs the program; the last of the words is what it prints.
func (w *world) says(t *testing.T, words ...string) {
	t.Helper()
	args, text := words[:len(words)-1], words[len(words)-1]
	got := w.call(t.Context(), args...)
	got.want(t, 0)
	if !strings.Contains(got.stdout, text) {
		t.Errorf("%v prints %q, want %q", args, got.stdout, text)
	}
}

// Resize refuses other locks and directories, and changes nothing there.
func TestResizeRefuses(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	plantLocks(t, w)
	for p, text := range map[string]string{
		"invoice": "is no semaphore, but a mutex", "config": "is no semaphore, but a read-write lock",
		"java": "Curator's layout", "": "is no semaphore: it is a directory with 10 children",
	} {
		p = strings.TrimSuffix(w.top+"/"+p, "/")
		w.call(t.Context(), "resize", p, "3").want(t, codeFailed, text)
		if data, _, err := w.admin.Get(p); err != nil || len(data) > 0 {
			t.Errorf("%s has data %q, %v", p, data, err)
		}
	}
	w.call(t.Context(), "resize", "--limit", "/test/invoice").want(t, codeFailed, "is no semaphore, but a mutex")
	w.call(t.Context(), "resize", "--limit", "/test/nothing").want(t, codeNotFound, "does not exist")
	for _, n := range []string{"0", "-1", "many", "2147483648"} {
		w.call(t.Context(), "resize", "--", "/test/pool", n).want(t, codeUsage, "is not a number of leases")
	}
	w.call(t.Context(), "resize", "/test/pool").want(t, codeUsage, "how many leases")
}
