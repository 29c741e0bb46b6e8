package logbook

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode"
)

// Failure is why there is no connection to a server. Its text names the step that failed, the
// server, and the reason, in the words of an operator:
//
//	dial zk1:2181 (10.0.0.1:2181): connection refused
type Failure struct {
	Step Step
	To   Target
	Err  error
}

// Step is a step on the way to a session.
type Step string

// The steps, in their order. Only the first two are not about an address: StepResolve is about the resolver of the user,
// and StepLookup about a name.
const (
	StepResolve   Step = "ask"
	StepLookup    Step = "lookup"
	StepDial      Step = "dial"
	StepTLS       Step = "TLS handshake with"
	StepHandshake Step = "handshake with"
	StepIdentity  Step = "identify to"
	StepConnected Step = "connection to" // the connection had the session
)

func (f *Failure) Error() string { return string(f.Step) + " " + f.To.String() + ": " + f.reason() }
func (f *Failure) Unwrap() error { return f.Err }

// reason is the text without step and server.
func (f *Failure) reason() string {
	if HungUp(f.Err) {
		switch f.Step {
		case StepTLS:
			return "the server hung up; is this its port for TLS?"
		case StepDial, StepHandshake:
			return "the server hung up: it is not serving (starting, without a quorum, or read-only for want of " +
				"one), has too many connections (maxClientCnxns), or wants TLS"
		}
	}
	return plain(f.Err)
}

// HungUp reports whether an error says that the server has closed the connection.
func HungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ErrNoAnswer is the reason as long as a server may still answer. An error with a method Timeout that
// returns true has the same text.
var ErrNoAnswer = errors.New("no answer")

// plain returns the text of an error without what the text around it says already, such as
// addresses. Errors of a user's dialer keep their whole text.
//
//nolint:errorlint // it takes the layers off one by one
func plain(err error) string {
	if op, ok := err.(*net.OpError); ok && op.Err != nil {
		switch op.Op {
		case "dial", "read", "write":
			err = op.Err
		}
	}
	if sys, ok := err.(*os.SyscallError); ok {
		err = sys.Err
	}
	if dns, ok := err.(*net.DNSError); ok && !dns.Timeout() {
		return printable(dns.Err)
	}
	timeout, ok := err.(interface{ Timeout() bool })
	switch {
	case ok && timeout.Timeout():
		return ErrNoAnswer.Error()
	case err == io.EOF, err == io.ErrUnexpectedEOF, err == io.ErrClosedPipe, err == syscall.EPIPE:
		return "the server closed the connection"
	}
	return printable(err.Error())
}

// printable replaces line breaks and the like, and bounds the length. The text can come from a
// server: the names of a certificate, for example.
func printable(s string) string {
	const limit = 200
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

// Failures are several failures, as one error in one line.
type Failures []*Failure

// mostNamed is how many failures are written out.
const mostNamed = 5

func (fs Failures) Error() string {
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

// Unwrap returns the failures, all of them.
func (fs Failures) Unwrap() []error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f)
	}
	return errs
}
