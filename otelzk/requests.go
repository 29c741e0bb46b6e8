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

// measure records how long a request took. One that its caller has walked away from took
// nobody knows how long.
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

// requestSort is what requests for one operation to one server have in common.
type requestSort struct {
	name         string
	conventional []attribute.KeyValue // of span and metric
	span         trace.SpanStartOption
	metric       metric.MeasurementOption // of those that succeed
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

// sorts keeps them, since there are few, and much the same to say each time.
type sorts struct {
	mu  sync.RWMutex
	all map[sortKey]*requestSort
}

type sortKey struct{ op, chroot, server, peer string }

// maxSorts bounds what is kept of servers that come and go.
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

// defaultPort is the one that the conventions have left out.
const defaultPort = 2181

// requestAttributes are those of span and metric.
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

// peerAttributes says which address was spoken to, where it is one of the network.
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
