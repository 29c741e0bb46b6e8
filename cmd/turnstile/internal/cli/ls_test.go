package cli

import "testing"

const (
	uuidA = "_c_aaaaaaaa-0000-4000-8000-000000000000-"
	uuidB = "_c_bbbbbbbb-0000-4000-8000-000000000000-"
	uuidC = "_c_cccccccc-0000-4000-8000-000000000000-"
	zkGo  = "_c_00112233445566778899aabbccddeeff-"
	kazoo = "00112233445566778899aabbccddeeff"

	dataA = `{"id":"web-3/4711","label":"request 42","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	dataB = `{"id":"web-4/17"}`

	firstHolder = "l/" + uuidA + "lock-0000000000"
)

// plantLocks makes locks of all kinds, as several libraries do.
func plantLocks(t *testing.T, w *world) {
	t.Helper()
	w.own(t, "invoice/"+uuidA+"lock-0000000000", dataA)
	w.own(t, "invoice/"+uuidB+"lock-0000000001", dataB)
	w.own(t, "invoice/"+uuidC+"lock-0000000002", "10.1.2.3")
	w.own(t, "config/"+uuidA+"__READ__0000000000", dataA)
	w.own(t, "config/"+uuidB+"__READ__0000000001", dataB)
	w.own(t, "config/"+uuidC+"__WRIT__0000000002", "10.1.2.3")
	w.plant(t, "pool", `{"maxLeases":4,"version":1}`)
	w.plant(t, "pool/limit", "")
	w.own(t, "pool/"+uuidA+"x3-lease-0000000000", dataA)
	w.own(t, "pool/"+uuidB+"x2-lease-0000000001", dataB)
	w.own(t, "java/leases/"+uuidA+"lease-0000000000", "10.1.2.3")
	w.plant(t, "java/locks", "")
	w.own(t, "python/"+kazoo+"__lock__0000000000", "worker-7")
	w.own(t, "golang/"+zkGo+"lock-0000000000", "")
	w.plant(t, "stuck/lock-0000000000", "")
	w.own(t, "stuck/"+uuidB+"lock-0000000001", dataB)
	w.own(t, "mixed/"+uuidA+"lock-0000000000", dataA)
	w.own(t, "mixed/"+uuidB+"lease-0000000001", dataB)
	w.plant(t, "unused/x", "")
	if err := w.admin.Delete(w.top+"/unused/x", -1); err != nil {
		t.Fatal(err)
	}
	w.own(t, "evil/"+uuidA+"lock-0000000000", "{\"id\":\"\\u001b]0;gotcha\\u0007\\u202etxt\",\"label\":\"\\u009b31mred\"}")
}

func TestLs(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		plantLocks(t, w)
		got := w.call(t.Context(), "ls", w.top+"/")
		got.want(t, 0)
		w.golden(t, "ls", got.stdout)
	})
}
