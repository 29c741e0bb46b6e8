package placemodel

import (
	"flag"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

var write = flag.Bool("write", false, "write the table of worlds into docs/places.md")
