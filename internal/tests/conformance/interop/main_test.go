// Package interop_test lets Go, Java and Python contend for one lock: this module's clients,
// Apache Curator and kazoo as Debian has them. It tests what the page docs/interop.md says.
package interop_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m, removeCompiled) }
