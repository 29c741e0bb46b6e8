package election_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// Most tests want the end of a term to be confirmed, also on a busy machine. The variable is set before any
// goroutine runs, since goroutines read it without a lock.
func init() { election.SetConfirmTime(testserver.Patience) }
