package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the version of the module that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func versionCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Args:    cobra.NoArgs,
		Example: "  turnstile version --json",
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.JSON {
				return a.PrintJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": platform})
			}
			_, err := fmt.Fprintf(a.Out, "turnstile %s, %s, %s\n", version(), runtime.Version(), platform)
			return err
		},
	}
}
