// Package security holds tests of who may do what with a lock that has an ACL, and of what
// becomes known of secrets: for all types of lock, against a real server.
package security

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
