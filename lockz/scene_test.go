package lockz_test

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// evening is when the scene ends.
var evening = time.Date(2026, time.November, 20, 21, 14, 35, 0, time.UTC)

// traced is the key of a traceparent in a context.
type traced struct{}

// realistic returns the page, as HTML and as JSON, of a process that holds three locks, waits for two,
// and has lost one with its session. It is in virtual time, and always the same.
func realistic(t *testing.T) (asHTML, asJSON string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(evening.Add(-10 * time.Minute)))
		srv := zktest.Start(t)
		us := newProcess(t, srv, session.WithBackoff(1, 1), session.WithTrace(session.Trace{Traceparent: func(ctx context.Context) string {
			text, _ := ctx.Value(traced{}).(string)
			return text
		}}))
		must(t, mutex(t, us.Manager, "/locks/nightly-report", zklock.WithName("report")).Lock(labelled(t.Context(), "report of 20 November")))
		time.Sleep(42 * time.Second)
		must(t, srv.Expire(t.Context(), liveSession(t, us).ID()))
		time.Sleep(6 * time.Minute)

		others := newOther(t, srv)
		label := func(id, label string) []byte { return []byte(`{"id":"` + id + `","label":"` + label + `"}`) }
		lock(t, newContender(t, others, "/locks/stock", queue.Mutex(), label("web-3/4711", "request 7193")), "")
		ahead := newContender(t, others, "/locks/stock", queue.Mutex(), label("web-2/902", "request 7201"))
		wait(t, ahead, "")
		lock(t, newContender(t, others, "/locks/prices", queue.Writer(), label("batch-1/17", "import")), "")

		exports, err := newSem(t, us.Manager, "/limits/exports", 5).AcquireN(labelled(t.Context(), "export 88"), 3)
		must(t, err)
		_, err = exports.Token(t.Context())
		must(t, err)
		lock(t, newRW(t, us.Manager, "/locks/config").Reader(), "")
		time.Sleep(95 * time.Second)
		parent := context.WithValue(t.Context(), traced{}, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		must(t, mutex(t, us.Manager, "/locks/invoice-42", zklock.WithName("invoice")).Lock(labelled(parent, "request 8151")))
		time.Sleep(11 * time.Second)
		stock := mutex(t, us.Manager, "/locks/stock", zklock.WithLocalHandover(5), zklock.WithName("stock"))
		wait(t, stock, "request 8160")
		time.Sleep(4 * time.Second)
		wait(t, stock, "request 8164")
		wait(t, newRW(t, us.Manager, "/locks/prices").Reader(), "")
		time.Sleep(time.Until(evening))
		synctest.Wait()
		asHTML = tidy(get(us.page, "?format=html", "").Body.String())
		asJSON = tidy(get(us.page, "?format=json", "").Body.String())
	})
	return asHTML, asJSON
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// tidy replaces what differs from run to run: the process and the ids of nodes.
func tidy(page string) string {
	host, _ := os.Hostname()
	page = strings.ReplaceAll(page, host+"/"+strconv.Itoa(os.Getpid()), "web-1/4042")
	seen := make(map[string]string)
	return uuids.ReplaceAllStringFunc(page, func(id string) string {
		if seen[id] == "" {
			seen[id] = "6ba7b810-9dad-11d1-80b4-" + strings.Repeat(strconv.Itoa(len(seen)+1), 12)[:12]
		}
		return seen[id]
	})
}
