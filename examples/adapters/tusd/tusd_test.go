package tusd_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/exp/slog"

	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	adapter "github.com/turnstile-go/turnstile/examples/adapters/tusd"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

func locker(t *testing.T) (*ensemble.Process, *adapter.Locker) {
	t.Helper()
	p := ensemble.Start(t)
	return p, ensemble.Must(adapter.New(p.Manager, "/tusd/"+t.Name()))
}

func never() { panic("must not be called") }

// These two are tusd's tests of its memorylocker, with the locks of two replicas.
func TestTimeout(t *testing.T) {
	_, first := locker(t)
	_, second := locker(t)
	asked := make(chan struct{})
	one := ensemble.Must(first.NewLock("one"))
	ensemble.OK(t, one.Lock(t.Context(), func() { close(asked) })) // and does not give it up
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	two := ensemble.Must(second.NewLock("one"))
	go func() { ended <- two.Lock(ctx, never) }()
	ensemble.Wait(t, asked, "the holder is asked")
	cancel()
	if err := ensemble.Wait(t, ended, "the second Lock has returned"); !errors.Is(err, handler.ErrLockTimeout) {
		t.Errorf("the second Lock: %v", err)
	}
	ensemble.OK(t, one.Unlock())
}

func TestRequestUnlock(t *testing.T) {
	_, first := locker(t)
	_, second := locker(t)
	unlocked := make(chan error, 1)
	one := ensemble.Must(first.NewLock("one"))
	ensemble.OK(t, one.Lock(t.Context(), func() { unlocked <- one.Unlock() }))
	two := ensemble.Must(second.NewLock("one"))
	ensemble.OK(t, two.Lock(t.Context(), never))
	ensemble.OK(t, ensemble.Wait(t, unlocked, "the first is unlocked"))
	ensemble.OK(t, two.Unlock())
}

// Each holder in a line is asked by the one behind it, in one process and in several.
func TestLine(t *testing.T) {
	_, first := locker(t)
	_, second := locker(t)
	const waiting = 4
	one := ensemble.Must(first.NewLock("one"))
	ensemble.OK(t, one.Lock(t.Context(), func() { _ = one.Unlock() }))
	ended, all := make(chan error, waiting), make(chan struct{})
	var wg sync.WaitGroup
	for i := range waiting {
		l := []*adapter.Locker{first, second}[i%2]
		wg.Go(func() {
			lock := ensemble.Must(l.NewLock("one"))
			asked := make(chan struct{})
			err := lock.Lock(t.Context(), func() { close(asked) })
			ended <- err
			if err != nil {
				return
			}
			select {
			case <-asked:
			case <-all: // nobody asks the last one
			}
			_ = lock.Unlock()
		})
	}
	for range waiting {
		ensemble.OK(t, ensemble.Wait(t, ended, "all have had the lock"))
	}
	close(all)
	wg.Wait()
}

func TestLostLock(t *testing.T) {
	p, l := locker(t)
	told := make(chan struct{})
	one := ensemble.Must(l.NewLock("one"))
	ensemble.OK(t, one.Lock(t.Context(), func() { close(told) }))
	p.Expire(t)
	ensemble.Wait(t, told, "the holder is told of the loss")
	if err := one.Unlock(); !errors.Is(err, session.ErrLost) {
		t.Errorf("Unlock after a loss: %v", err)
	}
}

// server starts an upload server whose files are in a directory that all of them share.
func server(t *testing.T, dir string) (*ensemble.Process, string) {
	t.Helper()
	p, l := locker(t)
	composer := handler.NewStoreComposer()
	filestore.New(dir).UseIn(composer)
	l.UseIn(composer)
	h := ensemble.Must(handler.NewHandler(handler.Config{
		BasePath:                         "/files/",
		StoreComposer:                    composer,
		AcquireLockTimeout:               ensemble.Patience,
		GracefulRequestCompletionTimeout: 10 * time.Millisecond,
		NetworkTimeout:                   ensemble.Patience,
		DisableDownload:                  true,
		Logger:                           slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	srv := httptest.NewServer(http.StripPrefix("/files/", h))
	t.Cleanup(srv.Close)
	return p, srv.URL + "/files/"
}

// send sends a request of the protocol, and returns the answer.
func send(t *testing.T, method, url string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	resp, err := try(method, url, body, headers...)
	ensemble.OK(t, err)
	return resp
}

func try(method, url string, body io.Reader, headers ...string) (*http.Response, error) {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp, err
}

// upload begins an upload at a server, sends four bytes of ten, and leaves the connection open. answered gets the answer.
func upload(t *testing.T, url, dir string) (id string, answered <-chan error) {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	resp := send(t, "POST", url, nil, "Upload-Length", "10")
	location := resp.Header.Get("Location")
	id = location[strings.LastIndex(location, "/")+1:]
	body, more := io.Pipe()
	t.Cleanup(func() { more.Close() })
	done := make(chan error, 1)
	go func() {
		_, err := try("PATCH", url+id, body, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
		done <- err
	}()
	_, err := more.Write([]byte("four"))
	ensemble.OK(t, err)
	zktest.Eventually(t, ensemble.Patience, "the server writes", func() bool {
		file, err := os.Stat(filepath.Join(dir, id))
		return err == nil && file.Size() == 4
	})
	return id, done
}

// rest sends what is missing of an upload to another server.
func rest(t *testing.T, url string) {
	t.Helper()
	head := send(t, "HEAD", url, nil)
	if head.StatusCode != http.StatusOK || head.Header.Get("Upload-Offset") != "4" {
		t.Fatalf("HEAD: %s, offset %q, want 4", head.Status, head.Header.Get("Upload-Offset"))
	}
	patch := send(t, "PATCH", url, strings.NewReader("andsix"), "Upload-Offset", "4", "Content-Type", "application/offset+octet-stream")
	if patch.StatusCode != http.StatusNoContent || patch.Header.Get("Upload-Offset") != "10" {
		t.Fatalf("PATCH: %s, offset %q, want 10", patch.Status, patch.Header.Get("Upload-Offset"))
	}
}

// A client goes on at another replica, while the first one waits for more of the body.
func TestClientMovesToAnotherReplica(t *testing.T) {
	dir := t.TempDir()
	_, first := server(t, dir)
	_, second := server(t, dir)
	id, answered := upload(t, first, dir)
	rest(t, second+id)
	ensemble.Wait(t, answered, "the first request has ended")
}

// A replica that loses its session in the middle of an upload ends the request by itself.
func TestLoss(t *testing.T) {
	dir := t.TempDir()
	p, first := server(t, dir)
	_, second := server(t, dir)
	id, answered := upload(t, first, dir)
	p.Expire(t)
	ensemble.Wait(t, answered, "the request has ended")
	rest(t, second+id)
}
