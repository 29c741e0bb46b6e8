package lockz_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// cycle returns how long one lock and its release take, by n of them.
func cycle(b *testing.B, mx *zklock.Mutex, n int) float64 {
	b.Helper()
	began := time.Now()
	for range n {
		lease, err := mx.Acquire(b.Context())
		must(b, err)
		must(b, lease.Release(b.Context()))
	}
	return time.Since(began).Seconds() / float64(n)
}

// BenchmarkHandler measures one lock and its release without contention: without a page and with one. They
// take turns, round by round, since the machine's speed drifts. The benchmark reports medians, and the
// median of the ratios of each round.
func BenchmarkHandler(b *testing.B) {
	const rounds, perRound = 9, 50
	off, err := zklock.New(connect(b), testserver.Path(b))
	must(b, err)
	recorded := connect(b)
	lockz.Handler(recorded)
	on, err := zklock.New(recorded, testserver.Path(b))
	must(b, err)
	cycle(b, off, perRound)
	cycle(b, on, perRound)
	var offs, ons, ratios []float64
	for b.Loop() {
		for range rounds {
			without, with := cycle(b, off, perRound), cycle(b, on, perRound)
			offs, ons, ratios = append(offs, without), append(ons, with), append(ratios, with/without)
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	b.ReportMetric(median(offs)*1e6, "off-µs")
	b.ReportMetric(median(ons)*1e6, "on-µs")
	b.ReportMetric(median(ratios), "on/off")
}

func median(xs []float64) float64 { return slices.Sorted(slices.Values(xs))[len(xs)/2] }

// BenchmarkPage measures the page of a process that holds ten thousand locks.
func BenchmarkPage(b *testing.B) {
	const many = 10_000
	m := testserver.Connect(b, zktest.Start(b).Addr(), session.WithTimeout(testserver.Patience), session.WithNodeLimits(2*many, 1<<20))
	page := lockz.Handler(m)
	var g errgroup.Group
	g.SetLimit(100)
	for i := range many {
		g.Go(func() error {
			mx, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
			if err != nil {
				return err
			}
			return mx.Lock(b.Context())
		})
	}
	must(b, g.Wait())
	for _, format := range []string{"html", "json"} {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page.ServeHTTP(nowhere{}, httptest.NewRequest(http.MethodGet, "/?format="+format, nil))
			}
		})
	}
}

// nowhere is a client that costs nothing.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
