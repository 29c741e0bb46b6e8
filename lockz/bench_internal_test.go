package lockz

import (
	"testing"

	"github.com/turnstile-go/turnstile/session"
)

// BenchmarkHooks measures what the recorder does for one lock that waits for one node.
func BenchmarkHooks(b *testing.B) {
	r := new(recorder)
	a := session.AcquireInfo{Kind: "mutex", Path: "/locks/a", Weight: 1}
	h := session.HoldInfo{Kind: "mutex", Path: "/locks/a", Node: "/locks/a/n"}
	b.ReportAllocs()
	for b.Loop() {
		ctx, acquired := r.acquire(b.Context(), a)
		_, watched := r.watch(ctx, session.WatchInfo{Path: "/locks/a/m", Ahead: 1})
		watched(nil)
		released := r.hold(ctx, h)
		acquired(session.AcquireResult{})
		released(nil)
	}
}
