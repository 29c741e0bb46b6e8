package cli

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The command why names the holder of a lock and its waiters, says whether the holder answers, and what to do.
func TestWhy(t *testing.T) {
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	w.own(t, "l/"+uuidA+"lock-0000000000", dataA)
	w.own(t, "l/"+uuidB+"lock-0000000001", dataB)
	w.plant(t, "stuck/lock-0000000000", "")
	w.own(t, "stuck/"+uuidB+"lock-0000000001", dataB)
	got := w.call(t.Context(), "why", w.top+"/l")
	got.want(t, 0)
	got.matches(t,
		`^Held: web-3/4711 "request 42" holds `+w.top+`/l, queued \d+s ago\. Its process at 127\.0\.0\.1:\d+ answers: session 0x[0-9a-f]+ was heard of \d+\.\ds ago\.$`,
		`^Waiting: 1, the first is web-4/17, for \d+s\. No circle is seen\.$`, `^Next: see what the holder does. To ask it for the lock: turnstile break `)
	if n := strings.Count(got.stdout, "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, got.stdout)
	}
	w.says(t, "why", w.top+"/stuck", "No session owns the node: no process will ever give it up")
	w.says(t, "why", w.top+"/stuck", "Next: delete the node: turnstile break "+w.top+"/stuck --force")
	w.call(t.Context(), "why", w.top+"/nothing").want(t, codeNotFound, "does not exist")
}

// Tasks of two processes that wait for each other may be a circle, also if a node that goroutines share has no label. A
// circle is never certain. There is none if the labels differ.
func TestWhyCircle(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	a, b := w.manager(t), w.manager(t)
	for _, c := range []struct {
		dir, first, second string // the labels of a's two nodes
		opts               []zklock.Option
		circle             bool
	}{
		{"/plain", "order 17", "order 17", nil, true},
		{"/none", "", "", nil, true},
		{"/shared", "order 17", "order 17", []zklock.Option{zklock.WithLocalHandover(10)}, true},
		{"/kept", "order 17", "order 17", []zklock.Option{zklock.WithLazyRelease(time.Minute)}, true},
		{"/other", "order 17", "order 99", nil, false},
	} {
		t.Run(c.dir, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan *queue.Lease, 2)
			take := func(m *session.Manager, name, label string, opts ...zklock.Option) *queue.Lease {
				mx, err := zklock.New(m, c.dir+name, opts...)
				if err != nil {
					t.Error(err)
					return nil
				}
				within := ctx
				if label != "" {
					within = queue.WithLabel(ctx, label)
				}
				l, _ := mx.Acquire(within)
				return l
			}
			l, x := take(a, "/l", c.first, c.opts...), take(b, "/x", "order 18")
			go func() { done <- take(a, "/x", c.second) }()
			go func() { done <- take(b, "/l", "order 18", c.opts...) }()
			for _, p := range []string{"/l", "/x"} {
				zktest.Eventually(t, testserver.Patience, "two contenders", func() bool {
					names, _, _ := w.admin.Children(c.dir + p)
					return len(names) == 2
				})
			}
			got := w.call(t.Context(), "why", c.dir+"/l")
			got.want(t, 0)
			if circle := strings.Contains(got.stdout, "A circle is possible: "); circle != c.circle || strings.Contains(got.stdout, "certain") {
				t.Errorf("circle %v:\n%s", circle, got.stdout)
			}
			cancel()
			for range 2 {
				if l := <-done; l != nil {
					t.Error("there was no circle")
				}
			}
			if err := errors.Join(l.Release(t.Context()), x.Release(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ages are by the servers' clock, and a difference of the clocks is named.
func TestAgesByServers(t *testing.T) {
	libs, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(libs) == 0 {
		testserver.Missing(t, errors.New("no libfaketime"))
	}
	longtest.Only(t)
	for off, note := range map[string]string{"+1h": "is 1h0m behind that of the servers", "-1h": "is 1h0m ahead of that of the servers"} {
		e := zktest.StartReal(t, zktest.Environ("LD_PRELOAD", libs[0]), zktest.Environ("FAKETIME", off),
			zktest.Environ("DONT_FAKE_MONOTONIC", "1"), zktest.Environ("FAKETIME_DONT_FAKE_MONOTONIC", "1"))
		w := newWorld(t, e.Addr(0), "/")
		w.own(t, "locks/a/"+uuidA+"lock-0000000000", dataA)
		since := time.Now()
		zktest.Eventually(t, testserver.Patience, "an age", func() bool { return time.Since(since) > 2*time.Second })
		for _, args := range []string{"ls", "show /locks/a", "why /locks/a"} {
			got := w.call(t.Context(), strings.Fields(args)...)
			got.want(t, 0)
			age := regexp.MustCompile(`\b(\d+)s\b`).FindStringSubmatch(got.stdout)
			if age == nil || age[1] == "0" || strings.Contains(got.stdout, "59m") || strings.Contains(got.stdout, "1h") || !strings.Contains(got.err, note) {
				t.Errorf("%s: %s: %s%s", off, args, got.stdout, got.err)
			}
		}
	}
}

// On a narrow terminal the path is shortened in its middle, and no number is cut off.
func TestNarrow(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	long := "a-team/of-a-department/with-a-long-name/and-a-service/of-that-team/locks/invoice-1234567890"
	w.own(t, long+"/"+uuidA+"lock-0000000000", dataA)
	got := call(t.Context(), []string{"TURNSTILE_ZK=" + w.addr, "COLUMNS=80"}, "ls")
	got.want(t, 0)
	for line := range strings.Lines(got.stdout) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	got.matches(t, `^/test/.*….*7890  mutex  web-3/4711 "request 42"  \d+s +0$`)
	for text, want := range map[string]string{"abcdefghij": "abc…hij", "在庫ロック在庫ロック": "在庫ロ…ロック", "abc": "abc"} {
		if got := middle(text, 7); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"abcdef": "abcd…", "在庫ロック": "在庫ロック"} {
		if got := short(text, 5); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Jobs lists the records. A job that is overdue, and a record that cannot be read, give a status.
func TestJobs(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	w.plant(t, "jobs/report/last", `{"version":1,"tick":"2024-11-26T12:00:00Z","tries":2,"done":true,"by":"web-3/4711"}`)
	w.plant(t, "jobs/import/last", `{"version":1,"tick":"2024-11-26T13:00:00Z","tries":1,"by":"web-4/17"}`)
	w.plant(t, "jobs/export/last", `{"version":1,"tick":"2024-11-26T13:00:00Z","tries":3,"by":"web-4/17"}`)
	w.own(t, "jobs/import/lock/"+uuidA+"lock-0000000000", dataA)
	got := w.call(t.Context(), "jobs", "/test")
	got.want(t, 0)
	got.matches(t,
		`/test/jobs/report +2024-11-26T12:00:00Z +done +2 +\d+s +web-3/4711`, `/test/jobs/import .* running +1 `, `/test/jobs/export .* open +3 `)
	w.call(t.Context(), "jobs", "--max-age", "1h").want(t, 0)
	zktest.Eventually(t, testserver.Patience, "a job that is overdue", func() bool {
		got := w.call(t.Context(), "jobs", "--max-age", "10ms")
		return got.code == codeNo && strings.Count(got.stdout, "OVERDUE") == 3
	})
	w.plant(t, "jobs/broken/last", "nonsense")
	w.call(t.Context(), "jobs").want(t, codeNo, "/test/jobs/broken/last: ")
}
