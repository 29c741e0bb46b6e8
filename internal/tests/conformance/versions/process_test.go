package versions_test

import (
	"bytes"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// An arena is where one test takes place.
type arena struct {
	path    string
	timeout time.Duration // of sessions
}

const (
	longSession  = 10 * time.Second // longer than a busy machine holds a process up
	shortSession = 6 * time.Second  // where sessions are to end
)

// newArena skips the test where there is no real server or no version before. When all processes of the test have
// ended, nothing of theirs may stay.
func newArena(t *testing.T, timeout time.Duration) *arena {
	t.Helper()
	if !testserver.Real(t) {
		testserver.Missing(t, zktest.ErrNoZooKeeper)
	}
	programBefore(t)
	a := &arena{testserver.Path(t), timeout}
	t.Cleanup(func() {
		// A session that was killed or cut off still has nodes until it expires.
		zktest.Eventually(t, testserver.Patience, "all nodes of contenders are gone", func() bool { return owned(t, a.path) == 0 })
	})
	return a
}

// owned returns how many nodes of sessions there are at a path and below.
func owned(t *testing.T, dir string) int {
	t.Helper()
	_, stat, err := testserver.Admin(t).Exists(dir)
	expect.NoError(t, err)
	n := 0
	if stat.EphemeralOwner > 0 {
		n = 1
	}
	for _, child := range testserver.Children(t, dir) {
		n += owned(t, path.Join(dir, child))
	}
	return n
}

// process is a process of one version.
type process struct {
	*arena
	name   string
	proxy  *zktest.Proxy
	cmd    *exec.Cmd
	client *rpc.Client
	killed bool
	log    bytes.Buffer
}

// before and present name the two versions.
const (
	before  = "before"
	present = "present"
)

// start starts a process of a version, which ends with the test. Its session goes through a proxy.
func (a *arena) start(t *testing.T, version string) *process {
	t.Helper()
	program, err := os.Executable() // this test, which is the present version too
	expect.NoError(t, err)
	if version == before {
		program = programBefore(t)
	}
	p := &process{arena: a, name: version, proxy: testserver.Proxy(t), cmd: exec.Command(program)}
	p.cmd.Env = append(os.Environ(), driver.ServersEnv+"="+p.proxy.Addr(), driver.TimeoutEnv+"="+a.timeout.String())
	p.cmd.Stderr = &p.log
	stdin, err := p.cmd.StdinPipe()
	expect.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, p.cmd.Start())
	p.client = rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{stdout, stdin})
	t.Cleanup(func() { p.end(t) })
	return p
}

// end has the process end by itself, as a service that is shut down.
func (p *process) end(t *testing.T) {
	p.proxy.Heal()
	_ = p.client.Close()
	hung := time.AfterFunc(testserver.Patience, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !hung.Stop() {
		t.Errorf("%s did not end", p.name)
	}
	if err != nil && !p.killed {
		t.Errorf("%s: %v\n%s", p.name, err, p.log.Bytes())
	}
}

// kill ends the process at once. Its session goes on until it expires.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
}

// A call is a request that was sent, and what it got.
type call struct {
	driver.Answer
	p    *process
	req  driver.Request
	done chan *rpc.Call
}

// send sends a request, and does not wait for the answer.
func (p *process) send(r driver.Request) *call {
	c := &call{p: p, req: r}
	c.done = p.client.Go(driver.Method, r, &c.Answer, nil).Done
	return c
}

// ask sends a request that is answered soon, and must not fail.
func (p *process) ask(t *testing.T, r driver.Request) (value string) {
	t.Helper()
	return p.send(r).granted(t).Value
}

// begin asks for a lock, and does not wait for it.
func (p *process) begin(k driver.Lock) *call {
	return p.send(driver.Request{Verb: driver.Acquire, Lock: k})
}

// tries asks for a lock without waiting for other contenders.
func (p *process) tries(k driver.Lock) *call {
	return p.send(driver.Request{Verb: driver.Try, Lock: k})
}

// acquire gets a lock.
func (p *process) acquire(t *testing.T, k driver.Lock) *call {
	t.Helper()
	return p.begin(k).granted(t)
}

func (c *call) String() string {
	return fmt.Sprintf("%s (%s %s, %s)", c.p.name, c.req.Verb, c.req.Lock.Kind, path.Join(c.req.Lock.Path, c.req.Lock.Key))
}

// waits fails the test if the request has an answer.
func (c *call) waits(t *testing.T) {
	t.Helper()
	if len(c.done) > 0 {
		t.Fatalf("%s has an answer and should wait for the lock: %v, %+v", c, (<-c.done).Error, c.Answer)
	}
}

// err waits for the answer.
func (c *call) err(t *testing.T) error {
	t.Helper()
	return expect.Receive(t, c.String()+" gets an answer", c.done).Error
}

// granted waits for the lock, or another answer that is no error.
func (c *call) granted(t *testing.T) *call {
	t.Helper()
	if err := c.err(t); err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return c
}

// refused waits for an error.
func (c *call) refused(t *testing.T, word string) {
	t.Helper()
	if err := c.err(t); !isRefused(err, word) {
		t.Fatalf("%s: %v, want %q", c, err, word)
	}
}

func isRefused(err error, word string) bool {
	return err != nil && strings.HasPrefix(err.Error(), word+":")
}

// with sends a request about the hold.
func (c *call) with(verb string) *call {
	return c.p.send(driver.Request{Verb: verb, Of: c.Hold, Lock: c.req.Lock})
}

// release gives the lock up.
func (c *call) release(t *testing.T) {
	t.Helper()
	c.with(driver.Release).granted(t)
}

// directory returns where the contenders of a lock are. Those of several locks wait for the first of them.
func directory(k driver.Lock) string {
	switch {
	case k.Kind == "keyed":
		return path.Join(k.Path, zklock.EscapePath(k.Key))
	case k.Kind == "multi":
		return min(k.Path, slices.Min(k.Others))
	case strings.HasPrefix(k.Kind, "job"):
		return path.Join(k.Path, "lock")
	}
	return k.Path
}

// limitPin is the child that a semaphore has while a limit of Resize is in force.
const limitPin = "limit"

// contenders returns how many nodes of contenders a lock has.
func contenders(t *testing.T, k driver.Lock) int {
	t.Helper()
	if k.Kind != "curator" {
		all := testserver.Children(t, directory(k))
		return len(slices.DeleteFunc(all, func(name string) bool { return name == limitPin }))
	}
	// The first in the queue may have made its lease already.
	locks, leases := len(testserver.Children(t, k.Path+"/locks")), len(testserver.Children(t, k.Path+"/leases"))
	if leases > k.Leases {
		locks--
	}
	return locks + leases
}

// settled waits until a lock has n contenders.
func settled(t *testing.T, k driver.Lock, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, fmt.Sprintf("%d contenders at %s", n, directory(k)), func() bool {
		return contenders(t, k) == n
	})
}
