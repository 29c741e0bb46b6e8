package lockz_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// Words that do harm in a page that does not escape them.
const (
	hostilePath  = `/locks/<script>document.title='hostile'</script>/"'&amp;`
	hostileLabel = `"><img src=x onerror="document.title='hostile'">`
	hostileID    = `<u onmouseover=x>{{.}}</1`
)

// hostile returns a page with hostile words in every place.
func hostile(t *testing.T) (asHTML string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		us, others := newProcess(t, srv), newOther(t, srv)
		data := strings.ReplaceAll(fmt.Sprintf(`{"id":%q,"label":%q,"traceparent":%q}`, hostileID, hostileLabel, hostileLabel), `\x`, `\u00`)
		lock(t, newContender(t, others, hostilePath, queue.Mutex(), []byte(data)), "")
		wait(t, mutex(t, us.Manager, hostilePath), hostileLabel)
		time.Sleep(known)
		lock(t, mutex(t, us.Manager, hostilePath+"/held"), hostileLabel)
		lost, err := mutex(t, us.Manager, hostilePath+"/lost").Acquire(labelled(t.Context(), hostileLabel))
		must(t, err)
		must(t, srv.DeleteNode("/app"+lost.Path()))
		synctest.Wait()
		asHTML = get(us.page, "", "").Body.String()
	})
	return asHTML
}

// elements returns the names of the elements of a document, and its text. It fails if an element is not
// closed where it should be.
func elements(t *testing.T, document string) (names []string, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names, text
		}
		must(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			names = append(names, token.Name.Local)
		case xml.CharData:
			text += string(token)
		}
	}
}

// Words of others appear on the page as they are, and are never elements.
func TestEscapes(t *testing.T) {
	names, text := elements(t, hostile(t))
	for _, name := range []string{"script", "img", "u"} {
		if slices.Contains(names, name) {
			t.Errorf("the page has an element %s", name)
		}
	}
	for word, times := range map[string]int{hostilePath: 6, hostileLabel: 5, hostileID: 1} {
		if n := strings.Count(text, word); n < times {
			t.Errorf("%s is there %d times, want at least %d", word, n, times)
		}
	}
}

// Each element is closed in its place, and the page says what an operator looks for.
func TestWellFormed(t *testing.T) {
	asHTML, _ := realistic(t)
	names, text := elements(t, asHTML)
	for _, name := range []string{"html", "head", "title", "body", "h1", "section"} {
		if n := len(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s != name })); n != 1 {
			t.Errorf("%d elements %s", n, name)
		}
	}
	for _, word := range []string{"connected", "request 8151", "web-3/4711", "2 ahead", "3 leases", "1m43s", "151", "in this process"} {
		if !strings.Contains(text, word) {
			t.Errorf("the page does not say %q", word)
		}
	}
}

// The totals and the losses come first, then the acquisitions that wait longest, and then what is held.
func TestOrder(t *testing.T) {
	asHTML, _ := realistic(t)
	_, text := elements(t, asHTML)
	at := 0
	for _, word := range []string{"1 lost", "3 waiting, the longest for 1m32s", "3 held", "1 of 1 connected", "expired by the server", "request 8160", "request 8164", "export 88", "Timeout granted"} {
		next := strings.Index(text[at:], word)
		if next < 0 {
			t.Fatalf("no %q after the words before it", word)
		}
		at += next
	}
}

// A page for a person is bounded, and says how much more there is.
func TestRowsAreBounded(t *testing.T) {
	const many = 520
	synctest.Test(t, func(t *testing.T) {
		us := newProcess(t, zktest.Start(t))
		for i := range many {
			must(t, mutex(t, us.Manager, fmt.Sprintf("/a%d", i)).Lock(t.Context()))
		}
		body := get(us.page, "", "").Body.String()
		if n := strings.Count(body, `data-name="Token"`); n != 500 || !strings.Contains(body, ">520<") || !strings.Contains(body, "20 more") {
			t.Errorf("%d rows", n)
		}
		if n := len(us.shown(t).Holds); n != many {
			t.Errorf("%d holds in the JSON", n)
		}
	})
}
