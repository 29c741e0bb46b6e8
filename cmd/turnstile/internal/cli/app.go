// Package cli is the command line of turnstile: one file per command, and what they share. Main
// is the whole program. Tests call [App.Run] with arguments, buffers and a context of their own.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// App is one call of the program. The commands take all that is outside the program from it.
type App struct {
	In  io.Reader
	Out io.Writer // for results
	Err io.Writer // for errors and the log
	Env func(name string) string

	verbose    int
	began      bool         // the command line is good, and the command runs
	log        *slog.Logger // the program's and the library's; by default it has only warnings
	connection connection
	args       []string // of the command line
}

// Main runs the program with the process's arguments, and returns its exit status.
//
// The context of a command ends with the first SIGINT, SIGTERM, SIGHUP or SIGQUIT. A second one ends the process,
// except in commands that take signals themselves.
func Main() int {
	if code, over := begin(); over {
		return code
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	app := &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv}
	return end(app.Run(ctx, os.Args[1:]))
}

// root returns the command line of the whole program.
func (a *App) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "turnstile",
		Short: "Distributed locks on Apache ZooKeeper, from a shell",
		Long: `Turnstile takes, shows and breaks distributed locks on Apache ZooKeeper. It shares them
with programs that use the Go library github.com/turnstile-go/turnstile, and Apache Curator.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.setup(cmd) },
	}
	cmd.SetIn(a.In)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.Err)
	a.globalFlags(cmd.PersistentFlags())
	for _, command := range []func(*App) *cobra.Command{
		runCommand, lsCommand, showCommand, whyCommand, jobsCommand, watchCommand, breakCommand, checkCommand, resizeCommand,
	} {
		cmd.AddCommand(command(a))
	}
	cmd.AddCommand(&cobra.Command{Use: "exit-codes", Short: "Exit statuses of all commands", Long: exitCodesHelp()}, &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { a.print("turnstile %s", version()) },
	})
	// The help of the program fits a screen. That of a command has the flags of all.
	usual := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.HasParent() {
			usual(c, args)
			return
		}
		fmt.Fprintf(a.Out, "%s.\n\n", cmd.Short)
		for _, c := range cmd.Commands() {
			if c.Runnable() && c.Name() != "help" {
				fmt.Fprintf(a.Out, "  turnstile %-9s %s\n", c.Name(), c.Short)
			}
		}
		fmt.Fprint(a.Out, rootHelp)
	})
	return cmd
}

const rootHelp = `
Flags of all commands. A variable, such as TURNSTILE_CONNECT_TIMEOUT, stands
for one that is not given. TURNSTILE_AUTH has an identity on each line.
  --zk SERVERS            host:port,host:port/chroot (default: 127.0.0.1:2181)
  --auth, --auth-file     identities, as scheme:credentials
  --tls, --cacert, --cert, --key, --tls-server-name
  --timeout, --connect-timeout, -v

Exit statuses: turnstile help exit-codes. More: turnstile help COMMAND
`

// Run runs a command line, and returns the exit status: see [codes].
func (a *App) Run(ctx context.Context, args []string) int {
	out := &results{to: a.Out}
	a.Out, a.args = out, args
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began && !errors.As(err, new(*codeError)) {
		err = withCode(codeUsage, err)
	}
	// A list that could not be written is no success.
	if out.err != nil && (err == nil || err.Error() == "") {
		err = withCode(codeFailed, fmt.Errorf("write the results: %w", out.err))
	}
	code := codeOf(ctx, err)
	if code <= codeSignal && err != nil && err.Error() != "" {
		a.say("turnstile: %v", err)
		if code == codeUsage {
			a.say(`"turnstile help COMMAND" tells how a command is used.`)
		}
	}
	return code
}

// results is the writer of the results. It keeps its first error.
type results struct {
	to  io.Writer
	err error
}

func (r *results) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	r.err = cmp.Or(r.err, err)
	return n, err
}

// setup begins a command: it checks the flags that all commands have, before any I/O. Help and completions need none of
// them, and work whatever is in the environment.
func (a *App) setup(cmd *cobra.Command) error {
	a.log = a.logger()
	for c := cmd; c.HasParent(); c = c.Parent() {
		switch c.Name() {
		case "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			a.began = true
			return nil
		}
	}
	if err := a.environment(cmd.Root().PersistentFlags()); err != nil {
		return err
	}
	c := &a.connection
	switch {
	case c.Connect <= 0:
		return usagef("--connect-timeout %v is not positive", c.Connect)
	case (c.Cert == "") != (c.Key == ""):
		return usagef("--cert and --key go together")
	}
	a.log = a.logger()
	// cobra looks for these errors later, and then they would not be seen as those of the command line.
	if err := cmd.ValidateFlagGroups(); err != nil {
		return err
	}
	a.began = true
	return nil
}

// logger returns the log that the flags ask for.
func (a *App) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn - slog.Level(4*min(a.verbose, 2))}))
}

// interrupted is the cause of a context that a signal has ended.
type interrupted struct{ sig syscall.Signal }

func (i interrupted) Error() string { return i.sig.String() }

// signalContext returns a context that ends at the first SIGINT, SIGTERM, SIGHUP or SIGQUIT, with the signal
// as its cause. After that, the signals have their usual effect again. A signal that the caller of the
// program ignores, as nohup does, stays ignored.
func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	got := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(got, s)
		}
	}
	go func() {
		select {
		case s := <-got:
			sig, _ := s.(syscall.Signal)
			signal.Stop(got)
			cancel(interrupted{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(got); cancel(nil) }
}

// version returns the version of the module that the program was built from, and what it is built for.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
