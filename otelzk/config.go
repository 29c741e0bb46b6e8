package otelzk

import (
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Option changes what [New] does.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// config is the sum of the options.
type config struct {
	tracers      trace.TracerProvider
	meters       metric.MeterProvider
	propagator   propagation.TextMapPropagator
	attributes   []attribute.KeyValue
	requestSpans bool
	inNode       bool
}

func newConfig(opts []Option) config {
	c := config{
		tracers:      otel.GetTracerProvider(),
		meters:       otel.GetMeterProvider(),
		propagator:   propagation.TraceContext{},
		requestSpans: true,
		inNode:       true,
	}
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	return c
}

// isNil reports whether an interface is nil, or has a nil pointer in it. That comes of a variable
// of the provider's own type which nothing was assigned to; its methods tend to panic.
func isNil(p any) bool {
	v := reflect.ValueOf(p)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// WithTracerProvider sets where spans go; nil is ignored, and so is a nil pointer. Default: the
// global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) {
		if !isNil(p) {
			c.tracers = p
		}
	})
}

// WithMeterProvider sets where metrics go; nil is ignored, and so is a nil pointer. Default: the
// global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) {
		if !isNil(p) {
			c.meters = p
		}
	})
}

// WithPropagators sets what writes the traceparent of an acquisition into its node's data,
// and reads those of others; nil is ignored, and so is a nil pointer. Only what it has under the
// key traceparent counts, as that is what a node's data has room for. Default:
// [propagation.TraceContext], whatever the global propagator is: what the processes of one
// lock write for each other does not depend on what they speak with the rest of the world.
func WithPropagators(p propagation.TextMapPropagator) Option {
	return option(func(c *config) {
		if !isNil(p) {
			c.propagator = p
		}
	})
}

// WithAttributes adds attributes to every span and every metric, for example which of
// several ensembles it is about. Being on metrics, their values must be few. It may be
// given more than once. Default: none.
func WithAttributes(kv ...attribute.KeyValue) Option {
	return option(func(c *config) { c.attributes = append(c.attributes, kv...) })
}

// WithRequestSpans says whether requests to ZooKeeper are spans. Without them
// db.client.operation.duration is recorded all the same. Default: true.
func WithRequestSpans(on bool) Option {
	return option(func(c *config) { c.requestSpans = on })
}

// WithTraceparentInNode says whether nodes carry the traceparent of their acquisition, for
// others to link to; all who may read the lock's directory can see it. Links to others are
// made either way. Default: true.
func WithTraceparentInNode(on bool) Option {
	return option(func(c *config) { c.inNode = on })
}
