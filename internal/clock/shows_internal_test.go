package clock

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// What answers show. A follower can give some of them alone.
func TestShows(t *testing.T) {
	codes := []int32{codec.CodeOK, codec.CodeNoNode, codec.CodeNodeExists, codec.CodeBadVersion, codec.CodeNotEmpty,
		codec.CodeNoAuth, codec.CodeInvalidACL, codec.CodeThrottled, codec.CodeNotReadOnly, codec.CodeSessionExpired, codec.CodeSessionMoved,
		codec.CodeUnimplemented, codec.CodeConnectionLoss, codec.CodeRuntimeInconsistency, codec.CodeBadArguments, 1}
	const agreed = 5 // of codes, those first
	for op, want := range map[int32]evidence{
		codec.OpSync: evidenceLeader, codec.OpCreate: evidenceQuorum, codec.OpCreate2: evidenceQuorum,
		codec.OpCreateContainer: evidenceQuorum, codec.OpCreateTTL: evidenceQuorum, codec.OpDelete: evidenceQuorum,
		codec.OpSetData: evidenceQuorum, codec.OpSetACL: evidenceQuorum, codec.OpMulti: evidenceQuorum,
		codec.OpPing: evidenceNone, codec.OpExists: evidenceNone, codec.OpGetData: evidenceNone, codec.OpGetChildren2: evidenceNone,
		codec.OpSetWatches: evidenceNone, codec.OpClose: evidenceNone, codec.OpAuth: evidenceNone, codec.OpMultiRead: evidenceNone,
	} {
		for i, code := range codes {
			got, expect := shows(op, code), want
			if i >= agreed || op == codec.OpSync && code != codec.CodeOK {
				expect = evidenceNone
			}
			if got != expect {
				t.Errorf("op %d, code %d: %v, want %v", op, code, got, expect)
			}
		}
	}
}
