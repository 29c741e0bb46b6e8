package dial

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Failure is why there is no connection to a server. Its text has the step that failed, the server, and the reason,
// in the words of an operator:
//
//	dial zk1:2181 (10.0.0.1:2181): connection refused
type Failure struct {
	Step Step
	To   Target
	Err  error
}

type Step string

const (
	StepDial      Step = "dial"
	StepTLS       Step = "TLS handshake with"
	StepHandshake Step = "handshake with"
	StepConnected Step = "connection to" // the connection had the session
)

func (f *Failure) Error() string { return string(f.Step) + " " + f.To.String() + ": " + f.Reason() }
func (f *Failure) Unwrap() error { return f.Err }

// Reason is the text without step and server. Servers that do not serve only hang up, and package net repeats
// addresses.
func (f *Failure) Reason() string {
	if isEnd := hungUp(f.Err); isEnd && f.Step == StepTLS {
		return "the server hung up; is this its port for TLS?"
	} else if isEnd && (f.Step == StepDial || f.Step == StepHandshake) {
		return "the server hung up: it is not serving (starting, without a quorum, or read-only for want of one), " +
			"has too many connections (maxClientCnxns), or wants TLS"
	}
	err := f.Err
	if op, ok := err.(*net.OpError); ok && op.Err != nil { //nolint:errorlint // an error around it has a text of its own
		err = op.Err
	}
	if sys, ok := err.(*os.SyscallError); ok { //nolint:errorlint // the same
		err = sys.Err
	}
	late, ok := err.(interface{ Timeout() bool })
	switch {
	case ok && late.Timeout():
		return errNoAnswer.Error()
	case err == io.EOF, err == io.ErrUnexpectedEOF, err == io.ErrClosedPipe, err == syscall.EPIPE: //nolint:errorlint // the same
		return "the server closed the connection"
	}
	return err.Error()
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
