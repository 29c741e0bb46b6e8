package versions_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A version names one of the two.
type version string

const (
	old     version = "before"
	present version = "present"
)

// other returns the other version.
func (v version) other() version {
	if v == old {
		return present
	}
	return old
}

// An arena is where one test takes place.
type arena struct {
	path    string
	timeout time.Duration // of sessions
}

const (
	longSession  = 10 * time.Second // longer than a busy machine holds a process up
	shortSession = 4 * time.Second  // where sessions are to end
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
	name  string
	proxy *zktest.Proxy
	cmd   *exec.Cmd
	stdin io.WriteCloser
	asked chan string   // the nodes that somebody wants released
	gone  chan struct{} // closed when the process has ended
	err   error         // how it ended, if not killed; read when gone is closed
	log   bytes.Buffer

	mu      sync.Mutex
	last    int
	waiting map[int]chan driver.Answer // by request
}

// start starts a process of a version, which ends with the test. Its session goes through a proxy.
func (a *arena) start(t *testing.T, v version, name string) *process {
	t.Helper()
	program, err := os.Executable() // this test, which is the present version too
	expect.NoError(t, err)
	if v == old {
		program = programBefore(t)
	}
	p := &process{
		arena: a, name: name, proxy: testserver.Proxy(t), cmd: exec.Command(program),
		asked: make(chan string, 100), gone: make(chan struct{}), waiting: make(map[int]chan driver.Answer),
	}
	p.cmd.Env = append(os.Environ(), driver.ServersEnv+"="+p.proxy.Addr(), driver.TimeoutEnv+"="+a.timeout.String())
	p.cmd.Stderr = &p.log
	ready := make(chan driver.Answer, 1)
	p.waiting[0] = ready
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, p.cmd.Start())
	go p.read(stdout)
	t.Cleanup(func() { p.end(t) })
	if got := wait(t, ready, name+" is ready"); got.Reason != "" {
		t.Fatalf("%s: %+v", name, got)
	}
	return p
}

// end has the process end by itself, as a service that is shut down.
func (p *process) end(t *testing.T) {
	p.proxy.Heal()
	_ = p.stdin.Close()
	hung := time.AfterFunc(testserver.Patience, func() { _ = p.cmd.Process.Kill() })
	<-p.gone
	if !hung.Stop() {
		t.Errorf("%s did not end", p.name)
	}
	if p.err != nil {
		t.Errorf("%s: %v\n%s", p.name, p.err, p.log.Bytes())
	}
}

// kill ends the process at once. Its session goes on until it expires.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
	p.err = nil
}

// read hands out the answers until the process has ended.
func (p *process) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var a driver.Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			p.log.WriteString(err.Error())
			continue
		}
		if a.ID == 0 && a.Node != "" {
			p.asked <- a.Node
			continue
		}
		p.mu.Lock()
		answer := p.waiting[a.ID]
		delete(p.waiting, a.ID)
		p.mu.Unlock()
		answer <- a
	}
	p.err = p.cmd.Wait()
	close(p.gone)
}

// send sends a request. The answer comes on the channel.
func (p *process) send(r driver.Request) (id int, answer chan driver.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer = make(chan driver.Answer, 1)
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = answer
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // all fields can be written
	}
	_, _ = p.stdin.Write(append(line, '\n')) // if the process has ended, no answer comes
	return r.ID, answer
}

// wait waits for an answer that has to come.
func wait[T any](t *testing.T, answer <-chan T, what string) T {
	t.Helper()
	return expect.Receive(t, what, answer)
}

// ask sends a request that is answered soon, and must not fail.
func (p *process) ask(t *testing.T, r driver.Request) driver.Answer {
	t.Helper()
	a := p.answer(t, r)
	if a.Reason != "" {
		t.Fatalf("%s: %s: %+v", p.name, r.Verb, a)
	}
	return a
}

// answer sends a request that is answered soon.
func (p *process) answer(t *testing.T, r driver.Request) driver.Answer {
	t.Helper()
	_, answer := p.send(r)
	return wait(t, answer, p.name+" answers "+r.Verb)
}

// A ticket is a request for a lock.
type ticket struct {
	p      *process
	id     int
	lock   driver.Lock
	answer chan driver.Answer
}

// begin asks for a lock, and does not wait for it.
func (p *process) begin(k driver.Lock) *ticket {
	id, answer := p.send(driver.Request{Verb: driver.Acquire, Lock: k})
	return &ticket{p, id, k, answer}
}

// tries asks for a lock without waiting for other contenders.
func (p *process) tries(k driver.Lock) *ticket {
	id, answer := p.send(driver.Request{Verb: driver.Try, Lock: k})
	return &ticket{p, id, k, answer}
}

// acquire gets a lock.
func (p *process) acquire(t *testing.T, k driver.Lock) *held {
	t.Helper()
	return p.begin(k).granted(t)
}

// waits fails the test if the request has an answer.
func (k *ticket) waits(t *testing.T) {
	t.Helper()
	select {
	case a := <-k.answer:
		t.Fatalf("%s has an answer and should wait for the lock: %+v", k, a)
	default:
	}
}

func (k *ticket) String() string {
	return fmt.Sprintf("%s (%s, %s)", k.p.name, k.lock.Kind, path.Join(k.lock.Path, k.lock.Key))
}

// granted waits for the lock.
func (k *ticket) granted(t *testing.T) *held {
	t.Helper()
	a := wait(t, k.answer, k.String()+" gets the lock")
	if a.Reason != "" {
		t.Fatalf("%s: %+v", k, a)
	}
	return &held{k, a.Node}
}

// refused waits for an error.
func (k *ticket) refused(t *testing.T, reason string) {
	t.Helper()
	a := wait(t, k.answer, k.String()+" gets an answer")
	if a.Reason != reason {
		t.Fatalf("%s: %+v, want %q", k, a, reason)
	}
}

// held is a lock that a process holds.
type held struct {
	*ticket
	node string
}

// isHeld asks the process whether it holds the lock.
func (h *held) isHeld(t *testing.T) bool {
	t.Helper()
	return h.p.answer(t, driver.Request{Verb: driver.Held, Of: h.id}).Value == "true"
}

// release gives the lock up.
func (h *held) release(t *testing.T) {
	t.Helper()
	h.p.ask(t, driver.Request{Verb: driver.Release, Of: h.id})
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
