package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helps reports whether a command only prints help or completions.
func helps(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

// helpTopics are pages of "turnstile help" that are no commands.
func helpTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "Exit statuses of all commands", Long: exitCodesHelp()},
		{Use: "environment", Short: "Environment variables that stand for flags", Long: environmentHelp()},
	}
}

func environmentHelp() string {
	return strings.TrimSpace(`
For each flag of all commands there is an environment variable: TURNSTILE_ and the
name of the flag in capitals, with underscores, such as TURNSTILE_ZK for --zk and
TURNSTILE_CONNECT_TIMEOUT for --connect-timeout. A flag on the command line has
precedence. The variables are not read for --help, --json, --verbose and --version.

TURNSTILE_AUTH has one identity on each line, as scheme:credentials. Unlike the
arguments of a process, its environment is hidden from other users of the machine.
The command of "turnstile run" inherits the environment.
`)
}

// again returns a command line with words, and with the flags of this one that say how to reach the servers. It is for
// hints, so it has no secrets.
func (a *App) again(words ...string) string {
	line := []string{"turnstile"}
	for _, f := range a.given {
		switch {
		case slices.Contains(notFromEnvironment, f.Name):
		case f.Name == "auth":
			line = append(line, "--auth ...")
		case f.Value.Type() == "bool":
			line = append(line, "--"+f.Name+"="+f.Value.String())
		default:
			line = append(line, "--"+f.Name, shellWord(f.Value.String()))
		}
	}
	for _, w := range words {
		line = append(line, shellWord(w))
	}
	return strings.Join(line, " ")
}
