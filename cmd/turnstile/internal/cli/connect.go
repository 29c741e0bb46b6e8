package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// Connect opens a session as the flags say, within --connect-timeout. The caller must close the
// manager. more are options of the command. An error has its exit status already.
func (a *App) Connect(ctx context.Context, more ...session.Option) (*session.Manager, error) {
	opts, err := a.sessionOptions()
	if err != nil {
		return nil, err
	}
	return a.connect(ctx, append(opts, more...)...)
}

// connect is Connect with these options and no others.
func (a *App) connect(ctx context.Context, opts ...session.Option) (*session.Manager, error) {
	return a.connectTo(ctx, a.connection.connectString(), opts...)
}

// connectTo is connect with another connect string.
func (a *App) connectTo(ctx context.Context, servers string, opts ...session.Option) (*session.Manager, error) {
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	m, err := session.Connect(limited, servers, opts...)
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() != nil:
		return nil, ctx.Err() // a signal
	case errors.Is(err, session.ErrInvalid):
		return nil, usageError(err)
	case errors.Is(err, zk.ErrAuthFailed):
		return nil, withCode(codeRefused, err)
	}
	return nil, withCode(codeConnect, fmt.Errorf("no session with %s within %v: %w",
		servers, a.connection.connect, lastCause(err)))
}

var errSilence = errors.New("no server has answered")

// lastCause returns why the last attempt to connect has failed. An error of session.Connect joins it
// to the error of the context, if there was a failure.
func lastCause(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if both, ok := e.(interface{ Unwrap() []error }); ok {
			all := both.Unwrap()
			return all[len(all)-1]
		}
	}
	return errSilence
}

// sessionOptions returns the options that the flags ask for.
func (a *App) sessionOptions() ([]session.Option, error) {
	opts, err := a.plainOptions()
	if err != nil {
		return nil, err
	}
	cfg, err := a.connection.tls.config()
	if err != nil {
		return nil, err
	}
	if cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	return opts, nil
}

// plainOptions is sessionOptions without TLS.
func (a *App) plainOptions() ([]session.Option, error) {
	c := &a.connection
	opts := []session.Option{session.WithTimeout(c.timeout), session.WithLogger(a.Log)}
	identities, err := c.identities()
	if err != nil {
		return nil, err
	}
	for _, i := range identities {
		opts = append(opts, i.option())
	}
	return opts, nil
}
