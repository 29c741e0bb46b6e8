package quorum

import "github.com/turnstile-go/turnstile/internal/codec"

// throttled reports whether the server refuses the request as if it were too busy.
func (m *Member) throttled(r *request, frame []byte) bool {
	if m.st.Throttle == nil || r.op == codec.OpPing || r.op == codec.OpClose {
		return false // as in ZooKeeper
	}
	return m.st.Throttle(frame, r.session, r.from.last.at)
}
