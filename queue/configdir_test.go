package queue_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A Reconfigure that is refused has made a directory for nothing. It gives the directory back, and keeps one that has data.
func TestRefusedReconfigureLeavesNoDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m, err := session.Connect(t.Context(), "any:2181", session.WithDialer(srv.Dialer()),
			session.WithLogger(slog.New(slog.DiscardHandler)))
		mustBe(t, err, nil)
		defer m.Close()
		refusal := errors.New("refused")
		for dir, answer := range map[string]error{"/locks/refused": refusal, "/locks/changed": nil} {
			q, err := queue.New(m, dir)
			mustBe(t, err, nil)
			mustBe(t, q.Reconfigure(t.Context(), "pin", false, func(queue.Config) ([]byte, error) {
				return []byte("limit"), answer
			}), answer)
		}
		time.Sleep(time.Minute)
		s := testserver.Session(t, m)
		for dir, there := range map[string]bool{"/locks/refused": false, "/locks/changed": true} {
			stat, err := s.Exists(t.Context(), dir)
			mustBe(t, err, nil)
			if (stat != nil) != there {
				t.Errorf("%s is there: %v, want %v", dir, stat != nil, there)
			}
		}
	})
}
