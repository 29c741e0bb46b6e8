// Package security holds tests of who may do what with a lock that has an ACL, and of where
// secrets must not appear. They cover all types of lock, against a real server.
package security

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
