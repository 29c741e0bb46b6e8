package zklock_test

import (
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// faultTimeout is a session timeout for tests in which no session may be lost.
const faultTimeout = 2 * testserver.Patience
