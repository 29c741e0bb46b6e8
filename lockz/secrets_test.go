package lockz_test

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// exclusive is a mutex whose nodes have data of the program's own.
var exclusive = &queue.Kind{
	Name:     "mutex",
	Prefixes: []string{queue.PrefixLock},
	Policy:   func(queue.Node) queue.Policy { return queue.Policy{} },
}

// Nothing that a node's data has beside the id, the label and the traceparent of a contender is on the page: not in a
// hold, a wait or a loss. That no password is there is a test of internal/tests/conformance/security.
func TestDataIsNotShown(t *testing.T) {
	const data = "plover-27182"
	proxy, dir := testserver.Proxy(t), testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience))
	page := lockz.Handler(m)
	var shown strings.Builder
	show := func() {
		for _, query := range []string{"?format=html", "?format=json"} {
			shown.WriteString(get(page, query, "").Body.String())
		}
	}
	for i, own := range []string{
		`{"id":"web-3/4711","password":"` + data + `"}`, strings.Repeat("a", 256) + data, data + "\n",
	} {
		path := dir + "/" + string(rune('a'+i))
		q, err := queue.New(m, path)
		must(t, err)
		_, err = q.Acquire(t.Context(), queue.Request{Kind: exclusive, Data: []byte(own)})
		must(t, err)
		begin(t, mutex(t, m, path).Lock)
		zktest.Eventually(t, testserver.Patience, "a waiter behind the data", func() bool {
			waits := pageOf(t, page).Managers[0].Waits
			return len(waits) == i+1 && waits[i].Behind != nil && waits[i].Behind.Here // it has read the data
		})
		show()
	}
	must(t, proxy.Expire(t.Context(), testserver.Session(t, m).ID()))
	zktest.Eventually(t, testserver.Patience, "the losses", func() bool {
		show()
		return pageOf(t, page).Managers[0].LossCount > 0
	})
	if !strings.Contains(shown.String(), dir) || strings.Contains(shown.String(), data) {
		t.Errorf("the locks are shown: %v, their data: %v", strings.Contains(shown.String(), dir), strings.Contains(shown.String(), data))
	}
}
