//go:build !linux && !darwin && !freebsd

package cli

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

func (*App) keepName(locks.Contender) (forget func()) { return func() {} }

func begin() (code int, over bool) { return 0, false }
func end(code int) int             { return code }

func runCommand(*App) *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Hold a lock while a command runs (not on this system)", DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("run is not supported on " + runtime.GOOS + ": it needs process groups and signals")
		},
	}
}
