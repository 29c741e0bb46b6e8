package otelzk

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// request is the hook for one try of a request.
func (o *observer) request(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
	in := o.instruments
	measured := o.requestMetrics && in.requests.Enabled(ctx)
	spanned := o.requestSpans && acquisitionOf(ctx).admit(r.Op)
	if !spanned && !measured {
		return ctx, nil
	}
	began, conventional := time.Now(), requestAttributes(r)
	var span trace.Span
	if spanned {
		own := []attribute.KeyValue{attrRequestPath.String(r.Path)}
		if a, err := netip.ParseAddrPort(r.Peer); err == nil { // otherwise it is no network address
			own = append(own, semconv.NetworkPeerAddress(a.Addr().String()), semconv.NetworkPeerPort(int(a.Port())))
		}
		ctx, span = o.tracer.Start(ctx, r.Op+" "+r.Chroot, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(conventional...), trace.WithAttributes(own...), trace.WithAttributes(o.attributes...))
	}
	return ctx, func(err error) {
		end := requestEnding(r.Op, err)
		if span != nil {
			finish(span, end)
		}
		if measured && end.outcome != outcomeCanceled { // whose duration is not known
			in.record(ctx, in.requests, began, append(end.attributes(), conventional...)...)
		}
	}
}

// requestAttributes are the attributes of the span and the metric. The conventions leave out a default port.
func requestAttributes(r session.RequestInfo) []attribute.KeyValue {
	kv := []attribute.KeyValue{
		semconv.DBSystemNameKey.String("zookeeper"),
		semconv.DBNamespace(r.Chroot),
		semconv.DBOperationName(r.Op),
	}
	host, port, err := net.SplitHostPort(r.Server)
	if err != nil {
		return kv
	}
	kv = append(kv, semconv.ServerAddress(host))
	if n, err := strconv.Atoi(port); err == nil && n != 2181 {
		kv = append(kv, semconv.ServerPort(n))
	}
	return kv
}
