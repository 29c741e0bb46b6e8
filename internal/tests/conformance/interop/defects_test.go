package interop_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// These tests show defects of Curator that a lock shared with it inherits. The page says which versions
// have them. If a test fails, the page has to change.

// outlived is how long the sessions of these clients live.
const outlived = 8 * time.Second

// sufferer is a client of Curator's with a server that only this test uses.
type sufferer struct {
	*zktest.Ensemble
	admin  *zk.Conn
	path   string
	lines  chan string
	unread []string
}

// suffer starts a server and a client of Curator's that asks for a "mutex" or a "latch", by way of a proxy.
func suffer(t *testing.T, kind string) (*sufferer, *zktest.Proxy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	program, err := javaclient.CompileCurator(ctx, filepath.Join("testdata", "CuratorDefects.java"), t.TempDir())
	if errors.Is(err, java.ErrMissing) {
		testserver.Missing(t, err)
	}
	must(t, err)
	s := &sufferer{
		Ensemble: zktest.StartReal(t, zktest.ContainerCheck(time.Second), zktest.TickTime(200*time.Millisecond)),
		path:     "/shared", lines: make(chan string, 100),
	}
	s.admin, _, err = zk.Connect([]string{s.Addr(0)}, time.Minute, zk.WithLogger(silent{}))
	must(t, err)
	t.Cleanup(s.admin.Close)
	if kind == "mutex" {
		// Somebody else has it until release.
		_, err = s.admin.Create(s.path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, err = s.admin.Create(s.holder(), nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	proxy := zktest.StartProxy(t, s.Addr(0))
	s.run(t, program, proxy.Addr(), kind)
	return s, proxy
}

// holder is the first node of the queue.
func (s *sufferer) holder() string {
	return s.path + "/_c_00000000-0000-0000-0000-000000000000-lock-0000000000"
}

func (s *sufferer) run(t *testing.T, program *javaclient.Program, addr, kind string) {
	t.Helper()
	cmd := program.Command(context.Background(), addr, s.path, kind,
		strconv.Itoa(int(outlived.Milliseconds())), strconv.Itoa(int(limit.Seconds())))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { endProgram(stdin, s.lines); _ = cmd.Wait() })
	go func() {
		defer close(s.lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			s.lines <- in.Text()
		}
	}()
}

// endProgram closes a program's input and waits for the end of its output.
func endProgram(stdin io.Closer, lines <-chan string) {
	_ = stdin.Close()
	for range lines { // until it has ended
	}
}

// says waits until the program has printed a line that no call of says has returned for. Other lines,
// before it and behind it, are for other calls.
func (s *sufferer) says(t *testing.T, want string) {
	t.Helper()
	after := time.After(limit / 2)
	for {
		if i := slices.Index(s.unread, want); i >= 0 {
			s.unread = slices.Delete(s.unread, i, i+1)
			return
		}
		select {
		case line, ok := <-s.lines:
			if !ok {
				t.Fatalf("Java has ended without %q", want)
			}
			s.unread = append(s.unread, line)
		case <-after:
			t.Fatalf("Java does not say %q, but %q", want, s.unread)
		}
	}
}

// hasSaid reports whether the program has printed a line besides those of says.
func (s *sufferer) hasSaid(line string) bool {
	for {
		select {
		case next, ok := <-s.lines:
			if ok {
				s.unread = append(s.unread, next)
				continue
			}
		default:
		}
		return slices.Contains(s.unread, line)
	}
}

// nodes returns the names of the contenders.
func (s *sufferer) nodes(t *testing.T) []string {
	t.Helper()
	names, _, err := s.admin.Children(s.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

// waitNodes waits until there are n contenders.
func (s *sufferer) waitNodes(t *testing.T, n int) []string {
	t.Helper()
	var names []string
	zktest.Eventually(t, testserver.Patience, strconv.Itoa(n)+" contenders", func() bool {
		names = s.nodes(t)
		return len(names) == n
	})
	return names
}

// outage stops the server for longer than sessions live. The program takes its session for lost then, and
// opens another. The server, which counts a session's time anew when it starts, still has the first one and
// its nodes.
func (s *sufferer) outage(t *testing.T) {
	t.Helper()
	must(t, s.Kill(0))
	s.says(t, "LOST")
	must(t, s.Start(expect.Patient(t), 0))
	s.says(t, "RECONNECTED")
}

// latch is the kind of lock of Curator's LeaderLatch.
func latch() *queue.Kind {
	kind := queue.Mutex()
	kind.Prefixes = []string{queue.PrefixLatch}
	return kind
}

// secondHolder reports whether a client of ours gets the lock while the program is inside. The program is
// not, if it has another node than before.
func (s *sufferer) secondHolder(t *testing.T, before string, kind *queue.Kind) bool {
	t.Helper()
	q, err := queue.New(testserver.Connect(t, s.Addr(0)), s.path)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), limit/2)
	defer cancel()
	granted := make(chan error, 1)
	var lease *queue.Lease
	go func() {
		var err error
		lease, err = q.Acquire(ctx, queue.Request{Kind: kind})
		granted <- err
	}()
	anew := false
	zktest.Eventually(t, limit/2, "either a second holder, or a new node of the program's", func() bool {
		select {
		case err := <-granted:
			must(t, err)
			return true
		default:
		}
		names := s.nodes(t)
		anew = len(names) == 2 && !slices.Contains(names, before)
		return anew
	})
	if anew {
		cancel()
		<-granted
		return false
	}
	defer func() { must(t, lease.Release(context.WithoutCancel(ctx))) }()
	return !s.hasSaid("outside")
}

// tries is how often a test tries to show a defect. On a busy machine, the node of the lost session may go
// before the program has looked at it.
const tries = 3

// curator returns the version, and whether it is older than another.
func curator(t *testing.T, mended testserver.Release) (version string, before bool) {
	t.Helper()
	version, err := javaclient.CuratorVersion()
	if err != nil {
		testserver.Missing(t, err)
	}
	release, err := testserver.ParseRelease(version)
	must(t, err)
	return version, !release.Has(mended)
}

// CURATOR-604: a waiter for an InterProcessMutex that has lost its session while it waited takes the node
// of that session for its own. If it is first in the queue then, it is inside, and still is when the server
// removes the node. No version has mended that.
func TestCuratorEntersByTheNodeOfALostSession(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	version, _ := curator(t, testserver.Release{})
	for range tries {
		s, _ := suffer(t, "mutex")
		names := s.waitNodes(t, 2)
		node := names[0]
		if strings.HasSuffix(s.holder(), node) {
			node = names[1]
		}
		s.outage(t)
		// The holder leaves, if the program's node is still there.
		_, err := s.admin.Multi(&zk.CheckVersionRequest{Path: s.path + "/" + node, Version: -1},
			&zk.DeleteRequest{Path: s.holder(), Version: -1})
		if err == nil {
			s.says(t, "inside")
			if s.secondHolder(t, node, queue.Mutex()) {
				return
			}
		}
		t.Logf("Curator %s: it has made another node: %v", version, err)
	}
	t.Errorf("Curator %s: a mutex has no two holders after %d outages", version, tries)
}

// CURATOR-696: a LeaderLatch that has lost its session takes the node of that session for its own, and
// leads. Curator 5.7 looks at the node's owner.
func TestCuratorLeadsByTheNodeOfALostSession(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	version, defect := curator(t, testserver.Release{5, 7, 0})
	for range tries {
		s, _ := suffer(t, "latch")
		s.says(t, "inside")
		node := s.waitNodes(t, 1)[0]
		s.outage(t)
		s.says(t, "outside") // in the outage
		s.says(t, "inside")
		two := s.secondHolder(t, node, latch())
		if two && !defect {
			t.Fatalf("Curator %s: two leaders", version)
		}
		if two == defect {
			return
		}
		t.Logf("Curator %s: it has made another node", version)
	}
	t.Errorf("Curator %s: there are no two leaders after %d outages", version, tries)
}

// CURATOR-724: a LeaderLatch that has lost its session, and whose directory has gone meanwhile, is no
// candidate any more. The server removes the directory, a container, when all candidates have gone.
func TestCuratorIsNoCandidateWithoutDirectory(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	_, defect := curator(t, testserver.Release{5, 8, 0})
	s, proxy := suffer(t, "latch")
	s.says(t, "inside")
	proxy.Blackhole(zktest.Both)
	zktest.Eventually(t, limit/2, "the directory to go", func() bool {
		found, _, err := s.admin.Exists(s.path)
		return err == nil && !found
	})
	s.says(t, "LOST")
	proxy.Heal()
	s.says(t, "RECONNECTED")
	if !defect {
		s.says(t, "inside")
		return
	}
	q, err := queue.New(testserver.Connect(t, s.Addr(0)), s.path)
	must(t, err)
	for range 2 {
		lease, err := q.Acquire(expect.Patient(t), queue.Request{Kind: latch()})
		must(t, err)
		s.waitNodes(t, 1)
		must(t, lease.Release(expect.Patient(t)))
	}
	if names := s.nodes(t); len(names) > 0 || s.hasSaid("inside") {
		t.Errorf("a candidate after all: %v", names)
	}
}
