// Package interop_test lets Go, Java and Python contend for one lock: this module's clients,
// Apache Curator and kazoo as Debian has them. What is written on the page docs/interop.md
// is tested here.
package interop_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m, removeCompiled) }
