package schedule_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
