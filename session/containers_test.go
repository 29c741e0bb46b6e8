package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Requests that the server does not implement have an error of their own. TTL nodes are disabled on servers by default: the
// server refuses them, and the connection stays.
func TestUnimplemented(t *testing.T) {
	real := zktest.StartReal(t, zktest.Property("extendedTypesEnabled", "false"))
	s := testserver.Session(t, testserver.Connect(t, real.ConnectString()))
	_, err := s.Create(patient(t), "/ttl", nil, session.PersistentTTL(time.Hour))
	wantErr(t, "a TTL node", err, session.ErrUnimplemented)
	if strings.Contains(err.Error(), "unknown") {
		t.Errorf("%v", err)
	}
}
