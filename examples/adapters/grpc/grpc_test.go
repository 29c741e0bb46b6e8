package grpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	adapter "github.com/turnstile-go/turnstile/examples/adapters/grpc"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// server is a service that gRPC has. The name in a request is the key of the lock.
type server struct {
	health.UnimplementedHealthServer
	check func(ctx context.Context) error
}

func (s server) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return &health.HealthCheckResponse{}, s.check(ctx)
}

// serve starts a server and returns a function that calls it.
func serve(t *testing.T, p *ensemble.Process, check func(ctx context.Context) error) func(name string) codes.Code {
	t.Helper()
	key := func(_ string, req any) (string, bool) {
		name := req.(*health.HealthCheckRequest).Service
		return name, name != ""
	}
	wait := func(ctx context.Context) context.Context { return queue.WithMaxWait(ctx, time.Second) }
	locks := ensemble.Must(zklock.NewKeyed(p.Manager, "/grpc/"+t.Name()))
	s := grpc.NewServer(grpc.UnaryInterceptor(adapter.Unary(locks, key, wait)))
	health.RegisterHealthServer(s, server{check: check})
	l := bufconn.Listen(1 << 16)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	conn := ensemble.Must(grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })))
	t.Cleanup(func() { _ = conn.Close() })
	return func(name string) codes.Code {
		_, err := health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{Service: name})
		return status.Code(err)
	}
}

// The calls of a key exclude each other at both servers, until the lock of the first one is lost. Its handler sees that and
// ends, and the call is aborted although it returns a response.
func TestLoss(t *testing.T) {
	process := ensemble.Start(t)
	working := make(chan struct{})
	one := serve(t, process, func(ctx context.Context) error {
		close(working)
		<-ctx.Done() // work that looks at its context
		return nil
	})
	two := serve(t, ensemble.Start(t), func(context.Context) error { return nil })
	first := make(chan codes.Code, 1)
	go func() { first <- one("invoice") }()
	ensemble.Wait(t, working, "the first call has the lock")
	for name, want := range map[string]codes.Code{"invoice": codes.Unavailable, "": codes.OK} {
		if code := two(name); code != want {
			t.Errorf("%q: a call meanwhile returns %v, want %v", name, code, want)
		}
	}
	process.Expire(t)
	if code := ensemble.Wait(t, first, "the first call ends"); code != codes.Aborted {
		t.Errorf("the first call returns %v", code)
	}
	for code := two("invoice"); code != codes.OK; code = two("invoice") {
		if code != codes.Unavailable { // until the other servers know of the end of the session
			t.Fatalf("a later call returns %v", code)
		}
	}
}

// The handler's own codes stay.
func TestCodes(t *testing.T) {
	call := serve(t, ensemble.Start(t), func(context.Context) error { return status.Error(codes.NotFound, "no such invoice") })
	if code := call("invoice"); code != codes.NotFound {
		t.Errorf("%v", code)
	}
}
