package cli

import "github.com/spf13/cobra"

// commands are the subcommands. Each has a file of its own.
var commands = []func(*App) *cobra.Command{
	breakCommand,
	checkCommand,
	lsCommand,
	resizeCommand,
	runCommand,
	showCommand,
	versionCommand,
	watchCommand,
}

// root returns the command line of the whole program.
func (a *App) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "turnstile",
		Short: "Distributed locks on Apache ZooKeeper, from a shell",
		Long: `Turnstile takes, shows and breaks distributed locks on Apache ZooKeeper.

It shares its locks with programs that use the Go library
github.com/turnstile-go/turnstile, and with Apache Curator.`,
		Example: `  # Run a backup on one machine at a time.
  turnstile run /jobs/backup -- ./backup.sh

  # The same, with the servers in the environment, and give up at once if another machine is at it.
  export TURNSTILE_ZK=zk1:2181,zk2:2181,zk3:2181/prod
  turnstile run --try /jobs/backup -- ./backup.sh`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.setup(cmd) },
	}
	cmd.SetIn(a.In)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.Err)
	a.globalFlags(cmd.PersistentFlags())
	for _, command := range commands {
		cmd.AddCommand(command(a))
	}
	cmd.AddCommand(helpTopics()...)
	return cmd
}

// Command returns the command line of the whole program to be read, and not to be run, for the manual pages and the
// completions in packages.
func Command() *cobra.Command { return new(App).root() }
