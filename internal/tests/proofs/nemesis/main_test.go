//go:build linux

package nemesis

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

var (
	writeFlag = flag.Bool("write", false, "write the table into docs/measured/nemesis.md")
	addFlag   = flag.Bool("add", false, "add a row for this attack to docs/measured/long.md")
)

func TestMain(m *testing.M) {
	if name := os.Getenv(workerEnv); name != "" {
		if err := workerMain(name, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testserver.Main(m)
}
