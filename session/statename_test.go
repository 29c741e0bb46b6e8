package session_test

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/session"
)

// A state has one name wherever users see it: lockz and otelzk take it from String, and queries of metrics have it in
// lower case.
func TestStateNames(t *testing.T) {
	seen := make(map[string]bool)
	for s := session.Connecting; s <= session.Closed; s++ {
		name := s.String()
		if name == "unknown" || name != strings.ToLower(name) || seen[name] {
			t.Errorf("state %d is called %q", s, name)
		}
		seen[name] = true
	}
}
