package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// failure is why there is no connection to a server. Its text names the step that failed, the
// server, and the reason, in the words of an operator:
//
//	dial zk1:2181 (10.0.0.1:2181): connection refused
type failure struct {
	step string // one of the steps below
	to   string // the server's name and address, or the name that was looked up
	err  error
}

// The steps on the way to a session.
const (
	stepLookup    = "lookup"
	stepDial      = "dial"
	stepTLS       = "TLS handshake with"
	stepHandshake = "handshake with"
	stepIdentity  = "identify to"
	stepConnected = "connection to"
)

func (f *failure) Error() string { return f.step + " " + f.to + ": " + f.reason() }
func (f *failure) Unwrap() error { return f.err }

// reason is the text without step and server.
func (f *failure) reason() string {
	if hungUp(f.err) {
		switch f.step {
		case stepTLS:
			return "the server hung up; is this its port for TLS?"
		case stepDial, stepHandshake:
			return "the server hung up: it is not serving (starting, without a quorum, or read-only for want of one), " +
				"has too many connections (maxClientCnxns), or wants TLS"
		}
	}
	return plain(f.err)
}

// hungUp reports whether the server has closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// errNoAnswer is the reason as long as a server may still answer.
var errNoAnswer = errors.New("no answer")

// errSilence is the reason for cutting a connection on which an answer is due.
func errSilence(d time.Duration) error {
	return fmt.Errorf("no answer for %v, so this side cut the connection", d.Round(time.Millisecond))
}

// errLongAnswer is the reason for cutting a connection on which one answer takes too long.
func errLongAnswer(d time.Duration) error {
	return fmt.Errorf("one answer has taken %v, so this side cut the connection to save the session", d.Round(time.Millisecond))
}

// plain returns the text of an error without what the text around it says already, such as
// addresses. Errors of a user's dialer keep their whole text.
//
//nolint:errorlint // it takes the layers off one by one
func plain(err error) string {
	if op, ok := err.(*net.OpError); ok && op.Err != nil && (op.Op == "dial" || op.Op == "read" || op.Op == "write") {
		err = op.Err
	}
	if sys, ok := err.(*os.SyscallError); ok {
		err = sys.Err
	}
	if dns, ok := err.(*net.DNSError); ok && !dns.Timeout() {
		return printable(dns.Err)
	}
	timeout, ok := err.(interface{ Timeout() bool })
	switch {
	case ok && timeout.Timeout(), err == wire.ErrSilent:
		return errNoAnswer.Error()
	case err == io.EOF, err == io.ErrUnexpectedEOF, err == io.ErrClosedPipe, err == syscall.EPIPE:
		return "the server closed the connection"
	}
	return printable(err.Error())
}

// printable replaces line breaks and the like, and bounds the length. The text can come from a
// server: the names of a certificate, for example.
func printable(s string) string {
	return short(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s))
}

// failures are several failures, as one error in one line.
type failures []*failure

// mostNamed is how many failures are written out.
const mostNamed = 5

func (fs failures) Error() string {
	var b strings.Builder
	for i, f := range fs[:min(len(fs), mostNamed)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Error())
	}
	if more := len(fs) - mostNamed; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

func (fs failures) Unwrap() []error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f)
	}
	return errs
}
