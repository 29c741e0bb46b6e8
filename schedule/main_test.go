package schedule_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// Most tests want a release to be confirmed, also on a busy machine. The variable is set before any goroutine
// runs, since goroutines read it without a lock.
func init() { share.UnlockPatience = testserver.Patience }
