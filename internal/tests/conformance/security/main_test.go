// Package security tests which clients may use a lock that has an ACL, and that secrets appear in no
// log, error or trace. The tests cover all types of lock, against a real server.
package security

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
