package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// revoker is a Java program that asks holders to leave, and is asked.
type revoker struct {
	stdin io.Writer
	lines <-chan string
}

func startRevoker(t *testing.T, ctx context.Context) *revoker {
	t.Helper()
	program, err := javaclient.CompileCurator(ctx, filepath.Join("testdata", "CuratorRevoker.java"), t.TempDir())
	if errors.Is(err, java.ErrMissing) {
		testserver.Missing(t, err)
	}
	must(t, err)
	ctx, cancel := context.WithCancel(ctx)
	cmd := program.Command(ctx, testserver.Server(t).Addr(0))
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 10)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range lines { // until the program has ended
		}
		_ = cmd.Wait()
	})
	return &revoker{stdin, lines}
}

// do has the program carry out a command.
func (r *revoker) do(t *testing.T, command string) {
	t.Helper()
	_, err := fmt.Fprintln(r.stdin, command)
	must(t, err)
	r.says(t, "done")
}

func (r *revoker) says(t *testing.T, want string) {
	t.Helper()
	if got := <-r.lines; got != want { // the program ends with the test's context
		t.Fatalf("the program says %q, want %q", got, want)
	}
}

// Curator's Revoker reaches our holders. Revoke reaches Curator's holders, of which nobody
// can know whether they listen.
func TestRevoke(t *testing.T) {
	newSite(t, 1) // skips the test where there is no real server
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	java := startRevoker(t, ctx)
	m, dir := testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t)

	mx, err := zklock.New(m, dir+"/a")
	must(t, err)
	ours, err := mx.Acquire(ctx)
	must(t, err)
	java.do(t, "revoke "+ours.Path())
	select {
	case <-ours.Revoked():
	case <-ctx.Done():
		t.Fatal("our holder was not asked")
	}
	must(t, ours.Release(ctx))
	err = mx.Do(ctx, func(work context.Context) error {
		lease, _ := queue.LeaseFrom(work)
		java.do(t, "revoke "+lease.Path())
		<-work.Done()
		return work.Err()
	})
	if !errors.Is(err, queue.ErrRevoked) {
		t.Errorf("Do returns %v", err)
	}

	theirs, err := zklock.New(m, dir+"/b")
	must(t, err)
	java.do(t, "hold "+dir+"/b")
	all, err := theirs.Contenders(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v, want one contender", all, err)
	}
	must(t, zklock.Revoke(ctx, m, all[0].Path))
	java.says(t, "asked")
	java.do(t, "release")
}
