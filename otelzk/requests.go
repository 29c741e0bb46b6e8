package otelzk

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnstile-go/turnstile/session"
)

// request is the hook for one try of a request.
func (o *observer) request(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
	measured := o.instruments.requests.Enabled(ctx)
	spanned := o.requestSpans && acquisitionOf(ctx).admit(r.Op)
	if !spanned && !measured {
		return ctx, nil
	}
	began := time.Now()
	sort := o.sorts.of(o, r)
	var span trace.Span
	if spanned {
		ctx, span = o.tracer.Start(ctx, sort.name, client, sort.span, trace.WithAttributes(attribute.String(attrRequestPath, r.Path)))
	}
	return ctx, func(err error) {
		end := requestEnding(r.Op, err)
		if span != nil {
			finish(span, end)
		}
		if measured {
			o.measure(ctx, sort, time.Since(began), end)
		}
	}
}

// measure records the duration of a request. If its caller has cancelled it, the duration is not known.
func (o *observer) measure(ctx context.Context, sort *requestSort, took time.Duration, end ending) {
	with := sort.metric
	switch {
	case end.outcome == outcomeCanceled:
		return
	case end.status != "" || end.errorType != "":
		with = o.instruments.with(append(end.attributes(), sort.conventional...)...)
	}
	o.instruments.requests.Record(ctx, took.Seconds(), with)
}

// requestSort has the name and the attributes of all requests for one operation to one server.
type requestSort struct {
	name         string
	conventional []attribute.KeyValue // of the span and the metric
	span         trace.SpanStartOption
	metric       metric.MeasurementOption // of requests that succeed
}

func (o *observer) newSort(r session.RequestInfo) *requestSort {
	conventional := requestAttributes(r)
	kv := append(peerAttributes(r.Peer), conventional...)
	return &requestSort{
		name:         r.Op + " " + r.Chroot,
		conventional: conventional,
		span:         trace.WithAttributes(append(kv, o.attributes...)...),
		metric:       o.instruments.with(conventional...),
	}
}

// sorts caches requestSorts. There are few of them, and each would be computed anew for every request.
type sorts struct {
	mu  sync.RWMutex
	all map[sortKey]*requestSort
}

type sortKey struct{ op, chroot, server, peer string }

// maxSorts bounds the cache, as servers come and go.
const maxSorts = 1000

func (s *sorts) of(o *observer, r session.RequestInfo) *requestSort {
	key := sortKey{r.Op, r.Chroot, r.Server, r.Peer}
	s.mu.RLock()
	found := s.all[key]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	found = o.newSort(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) >= maxSorts {
		s.all = make(map[sortKey]*requestSort)
	}
	s.all[key] = found
	return found
}

// defaultPort is ZooKeeper's. The conventions leave out server.port if it is the default.
const defaultPort = 2181

// requestAttributes are the attributes of the span and the metric.
func requestAttributes(r session.RequestInfo) []attribute.KeyValue {
	kv := []attribute.KeyValue{
		attribute.String(attrDBSystem, dbSystem),
		attribute.String(attrDBNamespace, r.Chroot),
		attribute.String(attrDBOperation, r.Op),
	}
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

// peerAttributes are the address that was used, if it is a network address.
func peerAttributes(peer string) []attribute.KeyValue {
	a, err := netip.ParseAddrPort(peer)
	if err != nil {
		return nil
	}
	return []attribute.KeyValue{
		attribute.String(attrPeerAddr, a.Addr().String()),
		attribute.Int(attrPeerPort, int(a.Port())),
	}
}
