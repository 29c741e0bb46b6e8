// Election keeps one leader among three processes: see candidate.go. In the demonstration the
// first leader is killed, the second one loses its leadership and has to stop, and the last
// ones resign.
//
//	go run ./examples/election                  # with a server in the process
//	go run ./examples/election -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// timeout is the session timeout: how long the others wait for a leader that has died. A
// leader that is cut off stops before that.
const timeout = 3 * time.Second

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	name := flag.String("candidate", "", "be one of the candidates, by this `name`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	run := demo
	if *name != "" {
		run = func(ctx context.Context, out io.Writer, servers string) error {
			return stand(ctx, out, servers, *name)
		}
	}
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "election:", err)
		os.Exit(1)
	}
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)))
}

// stand is a process that is a candidate.
func stand(ctx context.Context, out io.Writer, servers, name string) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := open(ctx, m); err != nil {
		return err
	}
	return (&candidate{name: name, m: m, out: out}).run(ctx)
}

// demo starts three candidates and prints what it does to them, between the lines that they
// print.
func demo(ctx context.Context, out io.Writer, servers string) error {
	if servers == "" {
		server, err := zktest.New(zktest.TickTime(timeout / 10))
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.ConnectString()
	}
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	term, err := open(ctx, m)
	if err != nil {
		return err
	}

	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	processes := map[string]*exec.Cmd{}
	for _, name := range []string{"Alice", "Bob", "Carol"} {
		cmd := exec.CommandContext(ctx, self, "-zk", servers, "-candidate", name)
		// When ctx ends, a candidate gets the time to resign.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 5 * time.Second
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		processes[name] = cmd
		defer func() {
			cancel()
			_ = cmd.Wait() // an error if it has ended before, as it should have
		}()
	}

	for _, happens := range []struct {
		what string
		to   func(leader *exec.Cmd) error
	}{
		{"the leader is killed: the others wait for its session to time out", kill},
		{"somebody deletes the leader's node", func(*exec.Cmd) error { return depose(ctx, m) }},
		{"the leader is told to end", interrupt},
		{"the last one, too", interrupt},
	} {
		if term, err = nextTerm(ctx, m, term); err != nil {
			return err
		}
		fmt.Fprintf(out, "-- %s\n", happens.what)
		leader, ours := processes[term.Leader]
		if !ours {
			return fmt.Errorf("%s leads, which is not one of our candidates: another program uses this path", term.Leader)
		}
		if err := happens.to(leader); err != nil {
			return err
		}
	}
	return remove(ctx, m)
}

func kill(leader *exec.Cmd) error {
	if err := leader.Process.Kill(); err != nil {
		return err
	}
	_ = leader.Wait() // an error, because it was killed
	return nil
}

func interrupt(leader *exec.Cmd) error {
	if err := leader.Process.Signal(os.Interrupt); err != nil {
		return kill(leader) // not every system has this signal
	}
	return leader.Wait()
}

// depose deletes the leader's node, as an operator might, and does not tell the leader.
func depose(ctx context.Context, m *session.Manager) error {
	e, err := election.New(m, electionPath)
	if err != nil {
		return err
	}
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	return s.Delete(ctx, leader.Path, -1)
}

// open makes the office if there is none, and returns its content.
func open(ctx context.Context, m *session.Manager) (office, error) {
	s, err := m.Session(ctx)
	if err != nil {
		return office{}, err
	}
	for _, node := range []struct {
		path string
		data []byte
		mode session.CreateMode
	}{{path.Dir(officePath), nil, session.Container}, {officePath, []byte("{}"), session.Persistent}} {
		if _, err := s.Create(ctx, node.path, node.data, node.mode); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return office{}, err
		}
	}
	data, _, err := s.Get(ctx, officePath)
	if err != nil {
		return office{}, err
	}
	var o office
	return o, json.Unmarshal(data, &o)
}

func remove(ctx context.Context, m *session.Manager) error {
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	return s.Delete(ctx, officePath, -1)
}

// nextTerm waits until there is a leader of a later term. Any client can watch the office.
func nextTerm(ctx context.Context, m *session.Manager, last office) (office, error) {
	for {
		s, err := m.Session(ctx)
		if err != nil {
			return office{}, err
		}
		data, _, watch, err := s.Watch(ctx, officePath)
		if errors.Is(err, session.ErrLost) {
			continue // with the next session
		}
		if err != nil {
			return office{}, err
		}
		var o office
		if err := json.Unmarshal(data, &o); err != nil {
			return office{}, err
		}
		if o.Term > last.Term {
			return o, nil
		}
		select {
		case <-watch.Done():
		case <-ctx.Done():
		}
	}
}
