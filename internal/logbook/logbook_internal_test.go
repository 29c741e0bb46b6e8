package logbook

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// text returns a logger that writes to b, without times and with all levels.
func text(b *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(b, timeless())) }

func timeless() *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
}

func noNames() []*Failure { return nil }

// wantLines compares the lines of a log that begin with the given texts, one for each.
func wantLines(t *testing.T, log string, want ...string) {
	t.Helper()
	var lines []string
	if log != "" {
		lines = strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	}
	for i := range max(len(lines), len(want)) {
		if i >= len(lines) || i >= len(want) || !strings.HasPrefix(lines[i], want[i]) {
			t.Fatalf("line %d of\n%s\nwant\n%s", i, log, strings.Join(want, "\n"))
		}
	}
}

const session = "0x1dc6acfac000000"

// Lines read the same in both of slog's formats: no duration is a number, and no attribute is nil.
func TestLogFormats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text, doc strings.Builder
		for _, h := range []slog.Handler{slog.NewTextHandler(&text, timeless()), slog.NewJSONHandler(&doc, timeless())} {
			log, queue := Queued(slog.New(h))
			b := New(log, Terms{Timeout: time.Minute}, noNames)
			granted := Terms{Timeout: 40 * time.Second}
			b.Begin()
			b.Connected(session, zk1, granted)
			b.Suspended(session, zk1, &Failure{StepConnected, zk1, io.EOF}, 26*time.Second+1234567*time.Nanosecond)
			b.Failed(&Failure{StepDial, zk2, connRefused()})
			time.Sleep(firstNotice)
			synctest.Wait()
			b.Connected(session, zk2, granted)
			b.Lost(session, zk2, errors.New("expired by the server"))
			b.Closed(session)
			queue.Flush(time.Hour)
		}
		const wantText = `level=INFO msg="zookeeper session opened" session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" timeout=40s
level=WARN msg="zookeeper granted another session timeout than asked for" session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" asked=1m0s granted=40s advice="ask for 40s or less (WithTimeout), or raise maxSessionTimeout on every server: it is 20 ticks by default"
level=WARN msg="zookeeper session suspended" session=0x1dc6acfac000000 server="zk1:2181 (10.0.0.1:2181)" cause="the server closed the connection" remaining=26.001s
level=WARN msg="no connection to zookeeper" err="dial zk2:2181 (10.0.0.2:2181): connection refused" dials=1 outage=2s
level=INFO msg="zookeeper session reconnected" session=0x1dc6acfac000000 server="zk2:2181 (10.0.0.2:2181)" timeout=40s outage=2s
level=WARN msg="zookeeper session lost" session=0x1dc6acfac000000 server="zk2:2181 (10.0.0.2:2181)" cause="expired by the server"
level=INFO msg="zookeeper session closed" session=0x1dc6acfac000000
`
		const wantJSON = `{"level":"WARN","msg":"no connection to zookeeper","err":"dial zk2:2181 (10.0.0.2:2181): connection refused","dials":1,"outage":"2s"}
{"level":"INFO","msg":"zookeeper session reconnected","session":"0x1dc6acfac000000","server":"zk2:2181 (10.0.0.2:2181)","timeout":"40s","outage":"2s"}
{"level":"WARN","msg":"zookeeper session lost","session":"0x1dc6acfac000000","server":"zk2:2181 (10.0.0.2:2181)","cause":"expired by the server"}
`
		if got := text.String(); got != wantText {
			t.Errorf("got\n%s\nwant\n%s", got, wantText)
		}
		if got := doc.String(); !strings.Contains(got, wantJSON) {
			t.Errorf("got\n%s\nwant\n%s", got, wantJSON)
		}
	})
}

// A session reconnects only if it was suspended and not lost. Another session is opened, even if the first
// was lost while it was suspended.
func TestReconnectedAndOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		terms := Terms{Timeout: 10 * time.Second}
		b := New(text(&log), terms, noNames)
		defer b.Closed("")
		ended := &Failure{StepConnected, zk1, io.EOF}
		b.Begin()
		b.Connected("0x1", zk1, terms)
		b.Suspended("0x1", zk1, ended, time.Second)
		b.Connected("0x1", zk2, terms)
		b.Lost("0x1", zk2, errors.New("expired"))
		b.Connected("0x2", zk1, terms)
		b.Suspended("0x2", zk1, ended, time.Second)
		b.Lost("0x2", zk1, errors.New("uncertain"))
		b.Connected("0x3", zk1, terms)
		wantLines(t, log.String(),
			`level=INFO msg="zookeeper session opened" session=0x1 server="zk1`,
			`level=WARN msg="zookeeper session suspended" session=0x1 `,
			`level=INFO msg="zookeeper session reconnected" session=0x1 server="zk2:2181 (10.0.0.2:2181)" timeout=10s outage=0s`,
			`level=WARN msg="zookeeper session lost" session=0x1 `,
			`level=INFO msg="zookeeper session opened" session=0x2 `,
			`level=WARN msg="zookeeper session suspended" session=0x2 `,
			`level=WARN msg="zookeeper session lost" session=0x2 `,
			`level=INFO msg="zookeeper session opened" session=0x3 server="zk1:2181 (10.0.0.1:2181)" timeout=10s`)
	})
}

// After Closed there are no notices, whatever comes, and Closed without a session writes nothing.
func TestNothingAfterClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := New(text(&log), Terms{}, noNames)
		b.Begin()
		b.Failed(&Failure{StepDial, zk1, connRefused()})
		b.Closed("")
		b.Begin()
		b.Failed(&Failure{StepDial, zk1, connRefused()})
		b.Waiting(&Failure{StepDial, zk1, ErrNoAnswer})
		b.Broke(&Failure{StepConnected, zk1, errors.New("malformed")})
		time.Sleep(time.Hour)
		synctest.Wait()
		wantLines(t, log.String())
	})
}

// A notice has the failures of addresses and those of names. If there is none, it says that nothing answers.
func TestNoticeNamesEachServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var names []*Failure
		b := New(text(&log), Terms{}, func() []*Failure { return names })
		defer b.Closed("")
		b.Begin()
		time.Sleep(firstNotice)
		synctest.Wait()
		names = []*Failure{{StepLookup, Target{Host: "zk3"}, errors.New("no such host")}}
		b.Failed(names[0]) // is no dial
		b.Waiting(&Failure{StepDial, zk2, ErrNoAnswer})
		b.Failed(&Failure{StepDial, zk1, errors.New("the last one counts")})
		b.Failed(&Failure{StepDial, zk1, connRefused()})
		time.Sleep(leastGap)
		synctest.Wait()
		wantLines(t, log.String(),
			`level=WARN msg="no connection to zookeeper" err="no answer" dials=0 outage=2s`,
			`level=WARN msg="no connection to zookeeper" err="lookup zk3: no such host; `+
				`dial zk1:2181 (10.0.0.1:2181): connection refused; dial zk2:2181 (10.0.0.2:2181): no answer" dials=2 outage=6s`)
	})
}

// A server that breaks the protocol is named at once, and once in an outage. There are not more of these
// lines than some in an hour.
func TestBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		terms := Terms{Timeout: 10 * time.Second}
		b := New(text(&log), terms, noNames)
		defer b.Closed("")
		malformed := &Failure{StepConnected, zk1, errors.New("malformed")}
		b.Broke(malformed) // there is no outage
		wantLines(t, log.String())
		count := func() int { return strings.Count(log.String(), "zookeeper connection given up") }
		for i := range brokenLogged + 3 {
			b.Begin()
			b.Broke(malformed)
			b.Broke(malformed)
			b.Connected("0x1", zk1, terms)
			if want := min(i+1, brokenLogged); count() != want {
				t.Fatalf("%d lines after %d outages, want %d", count(), i+1, want)
			}
		}
		if want := `level=WARN msg="zookeeper connection given up" server="zk1:2181 (10.0.0.1:2181)" err=malformed`; !strings.HasPrefix(log.String(), want+"\n") {
			t.Errorf("got\n%s\nwant\n%s", &log, want)
		}
		time.Sleep(brokenWindow)
		b.Begin()
		b.Broke(malformed)
		if count() != brokenLogged+1 {
			t.Errorf("%d lines after an hour, want %d", count(), brokenLogged+1)
		}
	})
}

// Suspensions above the limit have level debug, and so have the reconnections after them, unless a notice was
// written in between. The next warning counts the suspensions that had none.
func TestFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		terms := Terms{Timeout: 10 * time.Second}
		b := New(text(&log), terms, noNames)
		defer b.Closed("")
		b.Begin()
		b.Connected("0x1", zk1, terms)
		flap := func(outage time.Duration, levels ...slog.Level) {
			t.Helper()
			log.Reset()
			b.Suspended("0x1", zk1, &Failure{StepConnected, zk1, io.EOF}, time.Second)
			time.Sleep(outage)
			synctest.Wait()
			b.Connected("0x1", zk1, terms)
			var want []string
			for _, l := range levels {
				want = append(want, fmt.Sprintf("level=%v ", l))
			}
			wantLines(t, log.String(), want...)
		}
		for range flapsLogged {
			flap(0, slog.LevelWarn, slog.LevelInfo)
		}
		flap(0, slog.LevelDebug, slog.LevelDebug)
		flap(firstNotice, slog.LevelDebug, slog.LevelWarn, slog.LevelInfo)
		time.Sleep(flapWindow)
		flap(0, slog.LevelWarn, slog.LevelInfo)
		if !strings.Contains(log.String(), " remaining=1s unlogged=2\n") {
			t.Errorf("got\n%s", &log)
		}
		flap(0, slog.LevelWarn, slog.LevelInfo)
		if strings.Contains(log.String(), "unlogged") {
			t.Errorf("got\n%s", &log)
		}
	})
}

// Terms that differ from those asked for bring one warning each, until they change.
func TestTermsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := New(text(&log), Terms{10*time.Second + 300*time.Microsecond, 3 * time.Second}, noNames)
		defer b.Closed("")
		connected := func(timeout, margin time.Duration, want ...string) {
			t.Helper()
			log.Reset()
			b.Connected("0x1", zk1, Terms{timeout, margin})
			b.Lost("0x1", zk1, errors.New("expired"))
			const opened, lost = `level=INFO msg="zookeeper session opened" `, `level=WARN msg="zookeeper session lost" `
			wantLines(t, log.String(), append(append([]string{opened}, want...), lost)...)
		}
		const about = `session=0x1 server="zk1:2181 (10.0.0.1:2181)" `
		connected(10*time.Second, 3*time.Second) // no server can grant parts of a millisecond
		connected(4*time.Second, time.Second,
			`level=WARN msg="zookeeper granted another session timeout than asked for" `+about+
				`asked=10s granted=4s advice="ask for 4s or less (WithTimeout), or raise maxSessionTimeout `,
			`level=WARN msg="zookeeper session has a shorter margin than asked for" `+about+
				`asked=3s margin=1s timeout=4s advice="heartbeats need the rest of the timeout: `)
		connected(4*time.Second, time.Second)
		connected(40*time.Second, 3*time.Second,
			`level=WARN msg="zookeeper granted another session timeout than asked for" `+about+
				`asked=10s granted=40s advice="ask for 40s or more (WithTimeout), or lower minSessionTimeout `)
		connected(10*time.Second, 2*time.Second,
			`level=WARN msg="zookeeper session has a shorter margin than asked for" `+about+`asked=3s margin=2s timeout=10s `)
	})
}

// The causes of suspensions and losses do not repeat the server, and errors of others keep their text.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := New(text(&log), Terms{}, noNames)
		defer b.Closed("")
		ended := &Failure{StepConnected, zk1, io.EOF}
		b.Suspended("0x1", zk1, ended, 0)
		b.Lost("0x1", zk1, fmt.Errorf("suspended: %w", ended))
		for _, want := range []string{
			` cause="the server closed the connection" remaining=0s` + "\n",
			` cause="suspended: connection to zk1:2181 (10.0.0.1:2181): the server closed the connection"` + "\n",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("got\n%s\nwant %s", &log, want)
			}
		}
	})
}
