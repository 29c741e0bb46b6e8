package otelzk

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// defaultPort is the one that the conventions have left out.
const defaultPort = 2181

// request is the hook for one try of a request.
func (o *observer) request(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
	began := time.Now()
	conventional := requestAttributes(r)
	var span trace.Span
	if o.requestSpans {
		own := append(peerAttributes(r.Peer), attribute.String(attrRequestPath, r.Path))
		ctx, span = o.start(ctx, r.Op, trace.SpanKindClient, nil, append(own, conventional...)...)
	}
	return ctx, func(err error) {
		end := requestEnding(err)
		if span != nil {
			finish(span, end)
		}
		o.instruments.observeRequest(ctx, began, conventional, end)
	}
}

// requestAttributes are those of span and metric.
func requestAttributes(r session.RequestInfo) []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 4)
	kv = append(kv, attribute.String(attrDBSystem, dbSystem), attribute.String(attrDBOperation, r.Op))
	host, port, err := net.SplitHostPort(r.Server)
	if err != nil {
		return kv
	}
	kv = append(kv, attribute.String(attrServerAddr, host))
	if n, err := strconv.Atoi(port); err == nil && n != defaultPort {
		kv = append(kv, attribute.Int(attrServerPort, n))
	}
	return kv
}

// peerAttributes says which address was spoken to, where it is one of the network.
func peerAttributes(peer string) []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 8) // the request's others come too
	a, err := netip.ParseAddrPort(peer)
	if err != nil {
		return kv
	}
	return append(kv, attribute.String(attrPeerAddr, a.Addr().String()), attribute.Int(attrPeerPort, int(a.Port())))
}
