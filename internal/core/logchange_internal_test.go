package core

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
)

// The logbook gets of each change the session, its server, its terms, how long it is certain, and the cause
// without the id of the session.
func TestLogChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = 0x1dc6acfac000000
		zk1 := logbook.Target{Addr: "10.0.0.1:2181", Host: "zk1"}
		ended := &logbook.Failure{Step: logbook.StepConnected, To: zk1, Err: io.EOF}
		s := bareSession(t, newFakeConfig(t))
		s.link.to, s.margin = zk1, time.Second
		s.greeting = codec.Greeting{Session: id, TimeoutMillis: 4000}
		time.Sleep(time.Second) // no time remains
		var log strings.Builder
		asked := logbook.Terms{Timeout: 4 * time.Second, Margin: 2 * time.Second}
		b := logbook.New(slog.New(slog.NewTextHandler(&log, nil)), asked, func() []*logbook.Failure { return nil })
		const about = ` session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" `
		for _, c := range []struct {
			to   hooks.State
			s    *Session
			err  error
			want []string // in the lines
		}{
			{hooks.Connecting, nil, nil, nil},
			{hooks.Connected, s, nil, []string{
				`msg="zookeeper session opened"` + about + "timeout=4s\n",
				`shorter margin than asked for"` + about + "asked=2s margin=1s timeout=4s ",
			}},
			{hooks.Suspended, s, ended, []string{
				`msg="zookeeper session suspended"` + about +
					`cause="the server closed the connection" remaining=0s` + "\n",
			}},
			{hooks.Lost, s, lossError(id, lossExpired), []string{
				`msg="zookeeper session lost"` + about + `cause="expired by the server"` + "\n",
			}},
			{hooks.Closed, nil, ErrClosed, nil},
			{hooks.Closed, s, closedError(id), []string{`msg="zookeeper session closed" session=0x1dc6acfac000000` + "\n"}},
		} {
			log.Reset()
			change := hooks.Change{To: c.to, Err: c.err}
			if c.s != nil {
				change.Session = id
			}
			logChange(b, change, c.s)
			if n := strings.Count(log.String(), "\n"); n != len(c.want) {
				t.Errorf("%v: %d lines, want %d:\n%s", c.to, n, len(c.want), &log)
			}
			for _, want := range c.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%v: got\n%swant %s", c.to, &log, want)
				}
			}
		}
	})
}
