package lockz_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// No password and no data that a user has put into a node is on the page: not in a hold, a wait, a loss
// or a failure.
func TestSecretsAreNotShown(t *testing.T) {
	const user, password, data = "owner", "Xyzzy-plugh-31415", "plover-27182"
	soon := func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) }
	proxy, dir := testserver.Proxy(t), testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(testserver.Patience), session.WithRetry(soon),
		session.WithAuth("digest", []byte(user+":"+password)), session.WithACL(zk.DigestACL(zk.PermAll, user, password)...))
	page := lockz.Handler(m)
	var shown strings.Builder
	show := func() {
		for _, query := range []string{"?format=html", "?format=json"} {
			shown.WriteString(get(page, query, "").Body.String())
		}
	}
	for i, own := range []string{
		data, `{"id":"` + data + `"}`, `{"id":"web-3/4711","password":"` + data + `"}`, `"` + data + `"`, "{" + data,
		`{"id":"web-3/4711","label":["` + data + `"]}`,
	} {
		path := dir + "/" + string(rune('a'+i))
		holder := mutex(t, m, path, zklock.WithData([]byte(own)))
		lock(t, holder, "")
		begin(t, holder.Lock)
		zktest.Eventually(t, testserver.Patience, "a waiter behind the data", func() bool {
			waits := pageOf(t, page).Managers[0].Waits
			return len(waits) == i+1 && waits[i].Behind != nil && waits[i].Behind.Here // it has read the data
		})
		show()
	}
	proxy.Disconnect()
	show()
	// A handshake under way would compete with that of Expire for the session.
	zktest.Eventually(t, testserver.Patience, "the connection", func() bool { return m.State() == session.Connected })
	must(t, proxy.Expire(t.Context(), testserver.Session(t, m).ID()))
	zktest.Eventually(t, testserver.Patience, "the losses", func() bool {
		show()
		return pageOf(t, page).Managers[0].LossCount > 0
	})
	show()
	if !strings.Contains(shown.String(), dir) {
		t.Fatal("the page does not show the locks: is that all?")
	}
	for _, secret := range []string{password, data} {
		if i := strings.Index(shown.String(), secret); i >= 0 {
			t.Errorf("%s is shown: %q", secret, shown.String()[max(0, i-100):i+len(secret)])
		}
	}
}
