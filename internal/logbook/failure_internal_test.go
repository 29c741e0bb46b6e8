package logbook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

var zk1, zk2 = Target{"10.0.0.1:2181", "zk1"}, Target{"10.0.0.2:2181", "zk2"}

func connRefused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// The texts of failures are what operators read.
func TestFailureTexts(t *testing.T) {
	dialled := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 1}, Err: err}
	}
	for _, c := range []struct {
		step Step
		err  error
		want string
	}{
		{StepDial, connRefused(), "connection refused"},
		{StepDial, dialled(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to host"},
		{StepDial, dialled(os.ErrDeadlineExceeded), "no answer"},
		{StepDial, context.DeadlineExceeded, "no answer"},
		{StepDial, fmt.Errorf("by way of a proxy: %w", syscall.ECONNREFUSED), "by way of a proxy: connection refused"},
		{StepLookup, &net.DNSError{Err: "no such host", Name: "zk1", Server: "10.0.0.2:53", IsNotFound: true}, "no such host"},
		{StepLookup, &net.DNSError{Err: "i/o timeout", Name: "zk1", IsTimeout: true}, "no answer"},
		{StepTLS, io.EOF, "the server hung up; is this its port for TLS?"},
		{StepTLS, x509.UnknownAuthorityError{}, "x509: certificate signed by unknown authority"},
		{StepHandshake, io.EOF, "the server hung up: it is not serving (starting, without a quorum, or read-only for want of one), has too many connections (maxClientCnxns), or wants TLS"},
		{StepHandshake, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "the server hung up: it is not serving (starting, without a quorum, or read-only for want of one), has too many connections (maxClientCnxns), or wants TLS"},
		{StepHandshake, &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "remote error: tls: certificate required"},
		{StepConnected, io.EOF, "the server closed the connection"},
		{StepConnected, &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, "the server closed the connection"},
		{StepConnected, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "connection reset by peer"},
		{StepDial, errors.New("two\nlines\x1b[2J"), "two\uFFFDlines\uFFFD[2J"},
		{StepDial, errors.New(strings.Repeat("x", 1000)), strings.Repeat("x", 200) + "…"},
	} {
		f := &Failure{c.step, zk1, c.err}
		if got, want := f.Error(), string(c.step)+" zk1:2181 (10.0.0.1:2181): "+c.want; got != want {
			t.Errorf("%#v:\ngot  %s\nwant %s", c.err, got, want)
		}
		if !errors.Is(f, c.err) {
			t.Errorf("%v does not match its cause", f)
		}
	}
	var many Failures
	for i := range 7 {
		many = append(many, &Failure{StepLookup, Target{Host: fmt.Sprintf("zk%d", i)}, ErrNoAnswer})
	}
	if got := many.Error(); strings.Count(got, "; ") != mostNamed || !strings.HasSuffix(got, "; and 2 more") || strings.Contains(got, "\n") {
		t.Errorf("many failures: %s", got)
	}
	if !errors.Is(many, ErrNoAnswer) {
		t.Errorf("%v does not match its causes", many)
	}
	if got := many[0].Error(); got != "lookup zk0: no answer" {
		t.Errorf("a name: %s", got)
	}
}

func TestTargetName(t *testing.T) {
	for target, want := range map[Target]string{
		{"10.0.0.1:2181", "zk-0"}: "zk-0:2181",
		{"[::1]:2181", "zk-0"}:    "zk-0:2181",
		{"pipe", "zk-0"}:          "pipe",
		{"", "zk-0"}:              "zk-0",
	} {
		if got := target.Name(); got != want {
			t.Errorf("%#v is called %s, want %s", target, got, want)
		}
	}
}

// The text of a target has the address only if the name does not say it.
func TestTargetString(t *testing.T) {
	for target, want := range map[Target]string{
		zk1:                                   "zk1:2181 (10.0.0.1:2181)",
		{"zk1:2181", "zk1"}:                   "zk1:2181",
		{"[2001:db8::1]:2181", "db.zk"}:       "db.zk:2181 ([2001:db8::1]:2181)",
		{"10.0.0.1:2181", "10.0.0.1"}:         "10.0.0.1:2181",
		{"[2001:db8::1]:2181", "2001:db8::1"}: "[2001:db8::1]:2181",
		{"", "zk1"}:                           "zk1",
		{}:                                    "",
	} {
		if got := target.String(); got != want {
			t.Errorf("%#v reads %q, want %q", target, got, want)
		}
	}
}
