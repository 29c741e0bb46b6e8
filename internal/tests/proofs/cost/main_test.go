package cost

import (
	"flag"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var write = flag.Bool("write", false, "write the tables of TestScaling into docs/measured/cost.md, or those of TestStarvation into docs/measured/starvation.md")

func TestMain(m *testing.M) { testserver.Main(m) }
