// Package cli is the command line of turnstile: one file per command, and what they share. Main
// is the whole program. Tests call [App.Run] with arguments, buffers and a context of their own.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
)

// App is one call of the program. The commands take all that is outside the program from it.
// Fields may be set before [App.Run], and not changed after.
type App struct {
	In  io.Reader
	Out io.Writer // for results
	Err io.Writer // for errors and the log
	Env func(name string) string

	// JSON says that results, errors and the log are to be JSON.
	JSON bool
	// Log is the program's log and the library's. By default it has only warnings.
	Log *slog.Logger

	connection connectionFlags
	verbose    int
	began      bool          // the command line is good, and the command runs
	given      []*pflag.Flag // flags of all commands that the command line has

	stdout io.Writer // what Out was before Run, for commands that need the file

	sole  bool         // this call is all that the process does
	later *laterWriter // Err, while run has a lock to look after; nil: Err itself

	// interrupted says that Ctrl-C has ended the command of run, and that turnstile ends so too.
	interrupted bool
}

// Main runs the program with the process's arguments, and returns its exit status.
//
// The context of a command ends with the first SIGINT, SIGTERM, SIGHUP or SIGQUIT. A second one ends the process,
// except in commands that take signals themselves.
func Main() int {
	if supervise.IsHelper() {
		return supervise.Helper(prepareClose)
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	app := &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, sole: true}
	code := app.Run(ctx, os.Args[1:])
	if app.interrupted {
		supervise.Interrupt()
	}
	return code
}

// Run runs a command line, and returns the exit status: see [codes].
func (a *App) Run(ctx context.Context, args []string) int {
	results := &results{to: a.Out}
	a.stdout, a.Out = a.Out, results
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began && !errors.As(err, new(*codeError)) {
		err = usageError(err)
	}
	if failure := results.failure(); failure != nil && (err == nil || err.Error() == "") {
		err = failure
	}
	code := codeOf(ctx, err)
	if code <= codeSignal {
		a.report(err, code)
	}
	if a.later != nil {
		a.later.close()
	}
	return code
}

// report prints an error.
func (a *App) report(err error, code int) {
	to := a.messages()
	switch {
	case err == nil || err.Error() == "":
	case a.JSON:
		_ = json.NewEncoder(to).Encode(map[string]any{"error": err.Error(), "code": code})
	default:
		fmt.Fprintf(to, "turnstile: %v\n", err)
		if code == codeUsage {
			fmt.Fprintln(to, `"turnstile help COMMAND" tells how a command is used.`)
		}
	}
}

// PrintJSON writes one JSON value and a line break to a.Out.
func (a *App) PrintJSON(v any) error { return json.NewEncoder(a.Out).Encode(v) }

// setup begins a command: it checks the flags that all commands have, before any I/O. Help and completions need none of
// them, and work whatever is in the environment.
func (a *App) setup(cmd *cobra.Command) error {
	if helps(cmd) {
		a.began = true
		return nil
	}
	flags := cmd.Root().PersistentFlags()
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			a.given = append(a.given, f)
		}
	})
	if err := a.environment(flags); err != nil {
		return err
	}
	if err := a.connection.check(); err != nil {
		return err
	}
	a.Log = a.logger()
	a.began = true
	return nil
}

// neverBlock has errors and the log written by a goroutine of their own.
func (a *App) neverBlock() {
	a.later = newLaterWriter(a.Err)
	a.Log = a.logger()
}

// messages returns the writer for errors and the log.
func (a *App) messages() io.Writer {
	if a.later != nil {
		return a.later
	}
	return a.Err
}

// logger returns the log that the flags ask for.
func (a *App) logger() *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelWarn}
	switch {
	case a.verbose == 1:
		opts.Level = slog.LevelInfo
	case a.verbose > 1:
		opts.Level = slog.LevelDebug
	}
	to := &syncWriter{w: a.messages()}
	if a.JSON {
		return slog.New(slog.NewJSONHandler(to, opts))
	}
	return slog.New(slog.NewTextHandler(to, opts))
}

// syncWriter lets the loggers of several goroutines share a writer that need not allow that.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
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
