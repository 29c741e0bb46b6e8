// Rivals compares turnstile's locks with those of other libraries, on the same servers in one run,
// and with the plain requests that every lock on ZooKeeper needs. It starts the servers, and
// needs ZooKeeper, Curator, kazoo and etcd as Debian has them.
//
//	go run ./rivals                      # all, which takes a while; the table goes to standard output
//	go run ./rivals -write               # and to ../docs/measured/rivals.md, with a picture, and ../README.md
//	go run ./rivals -rows handover -rivals zk.Lock,limit -rounds 3
//	go run ./rivals -before HEAD~1 -rivals limit   # beside an earlier state of this library, which it builds
//	go run ./rivals -guard               # fails if a lock or a hand-over has become much slower, beside plain writes and zk.Lock
//	go run ./rivals -quick               # that everything works; the figures mean nothing
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch command := append(os.Args, "")[1]; command {
	case delayCommand:
		err = runDelayer(os.Args[2:], os.Stdin, os.Stdout)
	case readCommand:
		err = runReader(ctx, os.Args[2:], os.Stdin, os.Stdout)
	case serveCommand:
		err = runServer(ctx, os.Stdin, os.Stdout)
	default:
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	size   size
	rows   *regexp.Regexp
	rivals []string // turnstile among them
	before string   // a commit whose state is a rival; "": none
	page   string   // "": not to be written
	guard  bool     // fail if a bound is missed
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("rivals", flag.ContinueOnError)
	flags.SetOutput(messages)
	short := flags.Bool("quick", false, "one round of very little, to see that everything works")
	rounds := flags.Int("rounds", 0, "`rounds` in which each rival has its turn; 0: 9, or 1 with -quick")
	match := flags.String("rows", "", "rows to run: a regular `expression` on what their names and networks say")
	rivals := flags.String("rivals", strings.Join(optional, ","), "`names` of the rivals to run")
	before := flags.String("before", "", "a `commit` whose state of this library is a rival too")
	guard := flags.Bool("guard", false, "run the rows that have bounds, beside zk.Lock and plain writes, and fail if a bound is missed")
	write := flags.Bool("write", false, "write the page, the picture beside it, and the main figures in README.md; run from bench/")
	page := flags.String("page", "../docs/measured/rivals.md", "the `file` that -write writes")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.guard = *guard; o.guard {
		if flags.NFlag() > 1 && !(flags.NFlag() == 2 && *rounds != 0) {
			return o, errors.New("-guard chooses rows and rivals: it goes with -rounds only")
		}
		*match, *rivals = guardedRows, zkLockName+","+limitName
	}
	o.size = full
	if *short {
		o.size = quick
	}
	if *rounds != 0 {
		o.size.rounds = *rounds
	}
	var err error
	if o.rows, err = regexp.Compile(*match); err != nil {
		return o, err
	}
	o.before = *before
	for _, name := range names {
		if name == beforeName && o.before == "" {
			continue
		}
		if !slices.Contains(optional, name) || slices.Contains(strings.Split(*rivals, ","), name) {
			o.rivals = append(o.rivals, name)
		}
	}
	for name := range strings.SplitSeq(*rivals, ",") {
		if name != "" && !slices.Contains(optional, name) {
			return o, fmt.Errorf("no rival is called %q; there are %s", name, strings.Join(optional, ", "))
		}
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected %q", flags.Args())
	case o.size.rounds < 1:
		return o, fmt.Errorf("%d rounds: want one or more", o.size.rounds)
	case *write && (*short || *match != "" || o.before != "" || len(o.rivals) < len(names)-1):
		return o, errors.New("the page is for all rows of all rivals: -write goes with none of -quick, -rows, -rivals and -before")
	case *write:
		o.page = *page
	}
	return o, nil
}

// pictureFile is beside the page, and has its name.
func (o options) pictureFile() string {
	return strings.TrimSuffix(o.page, filepath.Ext(o.page)) + ".png"
}

func (o options) chosen() []row {
	return slices.DeleteFunc(rows(o.size), func(r row) bool {
		return !o.rows.MatchString(r.key + " " + r.String())
	})
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	chosen := o.chosen()
	if len(chosen) == 0 {
		return errors.New("no row matches -rows")
	}
	text, all, err := measureAll(ctx, o, chosen, slog.New(slog.NewTextHandler(messages, nil)))
	if err != nil {
		return err
	}
	fmt.Fprint(out, text)
	switch {
	case o.guard:
		return all.guard(out)
	case o.page == "":
		return nil
	}
	if err := picture(o.pictureFile(), all, o.rivals); err != nil {
		return err
	}
	main, err := readmeText(all)
	if err != nil {
		return err
	}
	return errors.Join(report.Section(o.page, "rivals", text), report.Section(readme, "speed", main))
}

// measureAll sets the stage, runs all rows, and clears it again.
func measureAll(ctx context.Context, o options, chosen []row, log *slog.Logger) (text string, all results, err error) {
	var nets []network
	for _, r := range chosen {
		nets = append(nets, r.net)
	}
	s, err := setUp(ctx, nets, slices.Contains(o.rivals, etcdName))
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	admin, err := dial(ctx, s.direct, nil)
	if err != nil {
		return "", nil, err
	}
	defer admin.Close()
	rivals, err := openRivals(ctx, s, o, admin)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, closeAll(rivals)) }()
	b := &bench{stage: s, rivals: rivals, rounds: o.size.rounds, span: o.size.span, log: log}
	if err := b.warmUp(ctx, o.size.warm); err != nil {
		return "", nil, err
	}
	for _, r := range chosen {
		res, err := b.run(ctx, r)
		if err != nil {
			return "", nil, err
		}
		all = append(all, res)
	}
	text = pageText(all, rivals, s, o)
	if o.before != "" {
		text += "\n" + all.besideBefore()
	}
	return text, all, nil
}
