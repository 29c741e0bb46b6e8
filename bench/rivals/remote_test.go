package main

import (
	"context"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// program is a remote that answers as a shell script does.
func program(t *testing.T, script string) *remote {
	t.Helper()
	r, err := startRemote("script", exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // its status is the script's
	return r
}

func TestRemote(t *testing.T) {
	r := program(t, `read a; echo ok; read a; echo "ok 5000 ,1,20, ,"; read a; echo "error at $a"; read a; echo ok 1 2; read a; echo ok 7000; read a; echo ok 1 2; read a`)
	team, err := r.open(t.Context(), plan{kind: mutex, servers: "s", path: "/p"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := team.Cycles(t.Context(), 2, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got.elapsed != 5*time.Microsecond || !slices.Equal(got.cycles, []time.Duration{1, 20}) || len(got.gaps) != 0 {
		t.Errorf("measured %+v", got)
	}
	if err := team.Hold(t.Context()); err == nil || !strings.Contains(err.Error(), "at hold") {
		t.Errorf("what it reports as an error is %v", err)
	}
	if _, err := team.Try(t.Context(), 1); err == nil {
		t.Error("an answer of two words was taken for a measurement")
	}
	if took, err := team.Processor(t.Context()); err != nil || took != 7*time.Microsecond {
		t.Errorf("a processor time of 7000 ns is %v, %v", took, err)
	}
	if _, err := team.Processor(t.Context()); err == nil {
		t.Error("an answer of two words was taken for a processor time")
	}
}

func TestRemoteEnds(t *testing.T) {
	if _, err := program(t, "read a").call(t.Context(), "hold"); err == nil {
		t.Error("a call of a program that ends succeeded")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := program(t, "exec cat >/dev/null").call(ctx, "hold"); err == nil {
		t.Error("a call that is not answered succeeded")
	}
}

// TestRelay has bytes come back late, and counted both ways.
func TestRelay(t *testing.T) {
	echo, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		c, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	const delay = 5 * time.Millisecond
	r, err := startRelay(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Fatalf("%q came back: %v", buf, err)
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("it came back after %v", took)
	}
	zktest.Eventually(t, 20*time.Second, "ten bytes", func() bool { return r.bytes.Load() == 10 })
}
