package rwlock_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// Unlock is a success in most tests, though it may have to wait on a busy machine. It is set
// before any goroutine runs, since they read it without a lock.
func init() { hold.UnlockPatience = testserver.Patience }
