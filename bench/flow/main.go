// Command flow counts the functions of this module that run in one call of a lock, and the files and packages that have
// them. A reader who follows the call has to know all of these. Build it with coverage, as make flow does:
//
//	go build -cover -covermode=atomic -coverpkg=github.com/turnstile-go/turnstile/... -o /tmp/flow ./flow
//	GOCOVERDIR=/tmp /tmp/flow -l lock
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const module = "github.com/turnstile-go/turnstile/"

// scenario is a call that can be counted.
type scenario struct {
	name, what string
	prepare    func(ctx context.Context, mine, other *zklock.Mutex) (call func() error, err error)
}

var scenarios = []scenario{
	{"lock", "Lock of a free lock whose directory exists", func(ctx context.Context, mine, _ *zklock.Mutex) (func() error, error) {
		return func() error { return mine.Lock(ctx) }, nil
	}},
	{"unlock", "its Unlock", func(ctx context.Context, mine, _ *zklock.Mutex) (func() error, error) {
		return mine.Unlock, mine.Lock(ctx)
	}},
	{"try", "TryLock of a lock that another session's node holds", func(ctx context.Context, mine, other *zklock.Mutex) (func() error, error) {
		return func() error {
			if got, err := mine.TryLock(ctx); err != nil || got {
				return fmt.Errorf("a try of a held lock: %v, %w", got, err)
			}
			return nil
		}, other.Lock(ctx)
	}},
	{"wake", "Unlock of the holder, and how that wakes the waiter", func(ctx context.Context, mine, other *zklock.Mutex) (func() error, error) {
		if err := other.Lock(ctx); err != nil {
			return nil, err
		}
		got := make(chan error, 1)
		go func() { got <- mine.Lock(ctx) }()
		for {
			all, err := mine.Contenders(ctx)
			if err != nil || len(all) == 2 {
				return func() error { return errors.Join(other.Unlock(), <-got) }, err
			}
		}
	}},
}

func main() {
	list := flag.Bool("l", false, "list the functions")
	step := flag.String("step", "", "for flow itself: server, or what to count with the server at -addr, into -dir")
	addr := flag.String("addr", "", "for flow itself")
	dir := flag.String("dir", "", "for flow itself")
	flag.Parse()
	var err error
	switch {
	case *step == "server":
		err = serve()
	case *step != "":
		err = measure(*step, *addr, *dir)
	default:
		err = run(os.Stdout, *list, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(1)
	}
}

// run counts the scenarios that are named, or all of them. The server runs in a process of its own, since what it runs is
// not to be counted, and so does each call.
func run(out io.Writer, list bool, names []string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.Command(self, "-step", "server")
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	from, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), server.Wait()) }()
	addr, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server does not start: %w", err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return fmt.Errorf("there is no call %q", name)
		}
	}
	for _, s := range scenarios {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		ran, err := count(self, s.name, strings.TrimSpace(addr))
		if err != nil {
			return err
		}
		files, packages := map[string]bool{}, map[string]bool{}
		for _, f := range ran {
			file, _, _ := strings.Cut(f, " ")
			files[file], packages[path.Dir(file)] = true, true
		}
		fmt.Fprintf(out, "%-7s %4d functions in %2d files of %2d packages: %s\n", s.name, len(ran), len(files), len(packages), s.what)
		if list {
			fmt.Fprintln(out, strings.Join(ran, "\n"))
		}
	}
	return nil
}

// count returns the functions that run in a call, as file and name.
func count(self, name, addr string) (ran []string, err error) {
	dir, err := os.MkdirTemp("", "flow-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	call := exec.Command(self, "-step", name, "-addr", addr, "-dir", dir)
	call.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	if text, err := call.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(text))
	}
	table, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line) // file:line: name percent
		if len(words) != 3 || words[0] == "total" || words[2] == "0.0%" || !strings.HasPrefix(words[0], module) {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(words[0], module), ":")
		if !strings.HasPrefix(file, "bench/") {
			ran = append(ran, file+" "+words[1])
		}
	}
	slices.Sort(ran)
	return ran, nil
}

// measure makes one call, and writes down what ran meanwhile.
func measure(name, addr, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, addr, session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	mine, err1 := zklock.New(m, "/flow/"+name)
	other, err2 := zklock.New(m, "/flow/"+name)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for range 3 { // the directory stays, and what is done once is done
		if err := errors.Join(mine.Lock(ctx), mine.Unlock()); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	call, err := scenarios[i].prepare(ctx, mine, other)
	if err != nil {
		return err
	}
	time.Sleep(late)
	if err := coverage.ClearCounters(); err != nil {
		return fmt.Errorf("%w: build flow as make flow does", err)
	}
	if err := call(); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
}

// late is when what happens late has happened, such as the watch on the node of a holder.
const late = 100 * time.Millisecond

func serve() error {
	s, err := zktest.New()
	if err != nil {
		return err
	}
	fmt.Println(s.Addr())
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent ends
	return errors.Join(err, s.Close())
}
