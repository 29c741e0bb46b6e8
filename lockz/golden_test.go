package lockz_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

var write = flag.Bool("write", false, "write the pages in testdata anew")

// The JSON of a page is what programs read. A change of it is a change of the API. The HTML has the totals and the losses
// first, then the acquisitions that wait longest, and then what is held.
func TestGolden(t *testing.T) {
	asHTML, asJSON := realistic(t)
	for file, got := range map[string]string{"page.json": asJSON, "page.html": asHTML, "hostile.html": hostile(t)} {
		file = "testdata/" + file
		if *write {
			must(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is another (-want +got); if that is meant: go test ./lockz -run TestGolden -write\n%s", file, diff)
		}
	}
}

// evening is when the scene ends.
var evening = time.Date(2026, time.November, 20, 21, 14, 35, 0, time.UTC)

// traced is the key of a traceparent in a context.
type traced struct{}

// realistic returns the page, as HTML and as JSON, of a process that holds three locks, waits for two,
// and has lost one with its session. It is in virtual time, and always the same.
func realistic(t *testing.T) (asHTML, asJSON string) {
	t.Helper()
	hooks := session.Trace{Traceparent: func(ctx context.Context) string {
		text, _ := ctx.Value(traced{}).(string)
		return text
	}}
	inBubbleFrom(t, evening.Add(-10*time.Minute), func(t *world) {
		report := mutex(t, t.us, "/locks/nightly-report", zklock.WithName("report"))
		must(t, report.Lock(labelled(t.Context(), "report of 20 November")))
		time.Sleep(42 * time.Second)
		t.expire(t.us)
		time.Sleep(6 * time.Minute)

		other := func(path string, kind *queue.Kind, id, label string) contender {
			return newContender(t, t.other, path, kind, fmt.Sprintf(`{"id":%q,"label":%q}`, id, label))
		}
		lock(t, other("/locks/stock", queue.Mutex(), "web-3/4711", "request 7193"), "")
		t.wait(other("/locks/stock", queue.Mutex(), "web-2/902", "request 7201"), "")
		lock(t, other("/locks/prices", queue.Writer(), "batch-1/17", "import"), "")

		exports, err := newSem(t, t.us, "/limits/exports", 5).AcquireN(labelled(t.Context(), "export 88"), 3)
		must(t, err)
		_, err = exports.Token(t.Context())
		must(t, err)
		lock(t, newRW(t, t.us, "/locks/config").Reader(), "")
		time.Sleep(95 * time.Second)
		parent := context.WithValue(t.Context(), traced{}, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		must(t, mutex(t, t.us, "/locks/invoice-42", zklock.WithName("invoice")).Lock(labelled(parent, "request 8151")))
		time.Sleep(11 * time.Second)
		stock := mutex(t, t.us, "/locks/stock", zklock.WithLocalHandover(5), zklock.WithName("stock"))
		t.wait(stock, "request 8160")
		time.Sleep(4 * time.Second)
		t.wait(stock, "request 8164")
		t.wait(newRW(t, t.us, "/locks/prices").Reader(), "")
		time.Sleep(time.Until(evening))
		synctest.Wait()
		asHTML = tidy(get(t.page, "?format=html", "").Body.String())
		asJSON = tidy(get(t.page, "?format=json", "").Body.String())
	}, session.WithBackoff(1, 1), session.WithTrace(hooks))
	return asHTML, asJSON
}

// Words that do harm in a page that does not escape them.
const (
	hostilePath  = `/locks/<script>document.title='hostile'</script>/"'&amp;`
	hostileLabel = `"><img src=x onerror="document.title='hostile'">`
	hostileID    = `<u onmouseover=x>{{.}}</1`
)

// hostile returns a page with hostile words in every place.
func hostile(t *testing.T) (asHTML string) {
	t.Helper()
	inBubble(t, func(t *world) {
		data := fmt.Sprintf(`{"id":%q,"label":%q,"traceparent":%q}`, hostileID, hostileLabel, hostileLabel)
		data = strings.ReplaceAll(data, `\x`, `\u00`)
		lock(t, newContender(t, t.other, hostilePath, queue.Mutex(), data), "")
		t.wait(mutex(t, t.us, hostilePath), hostileLabel)
		time.Sleep(known)
		lock(t, mutex(t, t.us, hostilePath+"/held"), hostileLabel)
		lost := lock(t, mutex(t, t.us, hostilePath+"/lost"), hostileLabel)
		must(t, t.server.DeleteNode("/app"+lost.Path()))
		synctest.Wait()
		asHTML = tidy(get(t.page, "", "").Body.String())
	})
	return asHTML
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
