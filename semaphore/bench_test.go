package semaphore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The rival is Curator's InterProcessSemaphoreV2 in a Java program, on the same server in the same run. The two take
// turns, round by round, since the machine's speed drifts. A benchmark reports the median of the rounds, and of the ratio
// of each round.
const (
	benchLeases = 10
	perRound    = 8
	warmUp      = 500 // for the JVM's compilers
)

func rounds() int {
	if testing.Short() {
		return 1 // it is enough to see that the benchmark runs
	}
	return 31
}

// cycles takes and gives back a lease n times, and returns the time.
type cycles func(n int) time.Duration

// BenchmarkUncontended measures one acquisition and release without contention: in the semaphore's own layout, in
// Curator's, and by Curator itself.
func BenchmarkUncontended(b *testing.B) {
	server := zktest.StartReal(b)
	b.Run("net=loopback", func(b *testing.B) { compareUncontended(b, server.Addr(0), func() {}) })
	b.Run("net=1ms-each-way", func(b *testing.B) {
		p := zktest.StartProxy(b, server.Addr(0))
		compareUncontended(b, p.Addr(), func() { p.Delay(time.Millisecond) })
	})
}

// compareUncontended calls ready when all have warmed up.
func compareUncontended(b *testing.B, addr string, ready func()) {
	ours := openOurs(b, addr, "/bench/ours")
	layout := openOurs(b, addr, "/bench/layout", semaphore.WithCuratorLayout())
	curator := startCurator(b, addr, "/bench/curator")
	for _, warm := range []cycles{ours, layout, curator} {
		warm(warmUp)
	}
	ready()
	var own, shared, rival, ratio []float64
	for b.Loop() {
		for range rounds() {
			o, s, r := ours(perRound).Seconds(), layout(perRound).Seconds(), curator(perRound).Seconds()
			own, shared, rival, ratio = append(own, o), append(shared, s), append(rival, r), append(ratio, r/o)
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	b.ReportMetric(median(own)*1e6/perRound, "ours-µs")
	b.ReportMetric(median(shared)*1e6/perRound, "ours-in-curator-layout-µs")
	b.ReportMetric(median(rival)*1e6/perRound, "curator-µs")
	b.ReportMetric(median(ratio), "times-as-fast")
}

func median(xs []float64) float64 {
	return slices.Sorted(slices.Values(xs))[len(xs)/2]
}

func openOurs(b *testing.B, addr, path string, opts ...semaphore.Option) cycles {
	b.Helper()
	s, err := semaphore.New(testserver.Connect(b, addr, session.WithTimeout(20*time.Second)), path, benchLeases, opts...)
	if err != nil {
		b.Fatal(err)
	}
	return func(n int) time.Duration {
		start := time.Now()
		for range n {
			if err := errors.Join(s.Lock(b.Context()), s.Unlock()); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
}

// startCurator starts the Java program, which does its own measuring.
func startCurator(b *testing.B, addr, path string) cycles {
	b.Helper()
	in, out := startJava(b, addr, path, strconv.Itoa(benchLeases))
	return func(n int) time.Duration {
		if _, err := fmt.Fprintln(in, n); err != nil {
			b.Fatal(err)
		}
		if !out.Scan() {
			b.Fatal("Curator has ended")
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(out.Text()), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(ns)
	}
}

func startJava(b *testing.B, args ...string) (io.Writer, *bufio.Scanner) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	source := filepath.Join("..", "internal", "tests", "conformance", "interop", "testdata", "CuratorBench.java")
	// Java's defaults, without flags for a quick start.
	p, err := javaclient.CompileCurator(ctx, source, b.TempDir(), "-XX:-UsePerfData")
	if errors.Is(err, java.ErrMissing) {
		testserver.Missing(b, err)
	}
	if err != nil {
		b.Fatal(err)
	}
	cmd := p.Command(ctx, args...)
	cmd.Stderr = os.Stderr
	in, out := pipes(b, cmd)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	return in, bufio.NewScanner(out)
}

func pipes(b *testing.B, cmd *exec.Cmd) (io.Writer, io.Reader) {
	b.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	return in, out
}
