package size

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/leastleft"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	keysEnv = "TURNSTILE_TEST_KEYS" // is set in a process of TestKeys: the index of its options
	keysDir = "/keys"
	inARow  = 4 // uses of a key by a process, at the same time for the most part
)

// keyJob tells a process of TestKeys to use some keys, or none.
type keyJob struct {
	Name    string
	Keys    int
	AtLeast time.Duration
	Once    bool // each key, without giving up
}

// keyReport is what the process answers.
type keyReport struct {
	Uses, Shared int64         // Shared: of a place that another goroutine has had
	Least        time.Duration // of the session was left
	Wrong        string        // the first thing
	inUse
}

// keyProcess is a process of TestKeys.
type keyProcess struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	to   *json.Encoder
	from *json.Decoder
}

// startKeys starts this test's binary as a process of TestKeys. A process notes in the directory held which keys it holds.
func startKeys(t *testing.T, i int, servers, held string) *keyProcess {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &keyProcess{t: t, cmd: exec.CommandContext(t.Context(), self, servers, held)}
	p.cmd.Env = append(os.Environ(), keysEnv+"="+strconv.Itoa(i))
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	p.to, p.from = json.NewEncoder(p.in), json.NewDecoder(out)
	must(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Wait() }) // of a test that has failed: its context has ended
	return p
}

// do has the process do a job.
func (p *keyProcess) do(j keyJob) (r keyReport) {
	if err := errors.Join(p.to.Encode(j), p.from.Decode(&r)); err != nil {
		p.t.Errorf("%+v: %v", j, err)
	}
	if r.Wrong != "" {
		p.t.Errorf("%+v: %s", j, r.Wrong)
	}
	return r
}

// end ends the process.
func (p *keyProcess) end() {
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// keyUser is the life of such a process.
type keyUser struct {
	locks  *zklock.Keyed
	s      *session.Session
	held   string // the directory
	shared atomic.Int64
	wrong  atomic.Pointer[string]
}

// keysMain does the jobs that it reads, until there are no more.
func keysMain(index string, args []string) error {
	i, err := strconv.Atoi(index)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	u := &keyUser{held: args[1]}
	m, err := session.Connect(ctx, args[0], quiet, session.WithTrace(session.Trace{Acquire: u.acquires}))
	if err != nil {
		return err
	}
	if u.s, err = m.Session(ctx); err != nil {
		return err
	}
	if u.locks, err = zklock.NewKeyed(m, keysDir, keyOptions[i]...); err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var j keyJob
		switch err := in.Decode(&j); {
		case errors.Is(err, io.EOF):
			return m.Close()
		case err != nil:
			return err
		}
		if err := out.Encode(u.do(j)); err != nil {
			return err
		}
	}
}

// acquires is the hook that counts the places of other goroutines.
func (u *keyUser) acquires(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
	return ctx, func(r session.AcquireResult) {
		if r.Err == nil && !r.Busy && r.Attempts == 0 {
			u.shared.Add(1)
		}
	}
}

func (u *keyUser) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	u.wrong.CompareAndSwap(nil, &text)
}

// do goes through the keys of a job, many at a time, for some time and at least once. The processes go through them in one
// order, so they meet at some.
func (u *keyUser) do(j keyJob) (r keyReport) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	least, before, end := leastleft.Watch(u.s), u.shared.Load(), time.Now().Add(j.AtLeast)
	uses, perKey := atomic.Int64{}, inARow
	if j.Once {
		perKey = 1
	}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for {
				at := int(uses.Add(1)) - 1
				if at >= perKey*j.Keys && !time.Now().Before(end) {
					return
				}
				way := at
				if j.Once {
					way = 0
				}
				if err := u.use(ctx, j, at/perKey%j.Keys, way); err != nil {
					u.fail("key %d: %v", at/perKey%j.Keys, err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := u.s.Err(); err != nil {
		u.fail("the session is lost: %v", err)
	}
	r = keyReport{Uses: uses.Load() - 40, Shared: u.shared.Load() - before, Least: least()}
	r.Heap, r.Goroutines = heapInUse(), goroutines.Count()
	if wrong := u.wrong.Load(); wrong != nil {
		r.Wrong = *wrong
	}
	return r
}

// use uses the lock of a key in one of several ways, and sees that no other process does meanwhile. A lock that is busy is no
// error.
func (u *keyUser) use(ctx context.Context, j keyJob, i, way int) error {
	work := func(context.Context) error {
		file := filepath.Join(u.held, strconv.Itoa(i))
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("two have it: %w", err)
		}
		return errors.Join(f.Close(), os.Remove(file))
	}
	return useKey(ctx, u.locks, j.key(i), way, work)
}

// useKey uses the lock of a key in one of several ways. A lock that is busy is no error.
func useKey(ctx context.Context, k *zklock.Keyed, key string, way int, work func(context.Context) error) error {
	switch way % 5 {
	case 0:
		return k.Do(ctx, key, work)
	case 1:
		_, err := k.TryDo(ctx, key, work)
		return err
	case 2:
		l, err := k.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx), l.Release(ctx))
	case 3:
		err := k.Do(queue.WithMaxWait(ctx, time.Millisecond), key, work)
		if errors.Is(err, queue.ErrMaxWait) {
			return nil
		}
		return err
	}
	if err := k.Lock(ctx, key); err != nil {
		return err
	}
	return errors.Join(work(ctx), k.Unlock(key))
}
