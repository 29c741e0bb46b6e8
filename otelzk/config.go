package otelzk

import (
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option changes what [New] does. A nil option is ignored.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// config is the sum of the options.
type config struct {
	tracers      trace.TracerProvider
	meters       metric.MeterProvider
	attributes   []attribute.KeyValue
	requestSpans bool
	inNode       bool
}

func newConfig(opts []Option) config {
	c := config{
		tracers:      otel.GetTracerProvider(),
		meters:       otel.GetMeterProvider(),
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

// isNil reports whether an interface is nil or holds a nil pointer, such as a variable of the provider's
// own type that was never assigned. Methods of such a pointer tend to panic.
func isNil(p any) bool {
	v := reflect.ValueOf(p)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// WithTracerProvider sets the provider of spans. Default, also for nil and a nil pointer: the global
// provider at the time of [New].
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) {
		if !isNil(p) {
			c.tracers = p
		}
	})
}

// WithMeterProvider sets the provider of metrics. Default, also for nil and a nil pointer: the global
// provider at the time of [New].
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) {
		if !isNil(p) {
			c.meters = p
		}
	})
}

// WithAttributes adds attributes to every span and every metric, for example the name of the ensemble.
// Since metrics have them, they must have few different values. The option can be given more than once.
// Default: none.
func WithAttributes(kv ...attribute.KeyValue) Option {
	return option(func(c *config) { c.attributes = append(c.attributes, kv...) })
}

// WithRequestSpans says whether requests to ZooKeeper have spans. db.client.operation.duration is
// recorded in any case. Default: true.
func WithRequestSpans(on bool) Option {
	return option(func(c *config) { c.requestSpans = on })
}

// WithTraceparentInNode says whether this process writes the traceparent of an acquisition into its
// node, for the links of other processes. Clients that can read the lock's directory can read it. Links
// to other contenders are made in any case. OpenTelemetry's global propagator has to be one that writes a
// traceparent: see [New]. Default: true.
func WithTraceparentInNode(on bool) Option {
	return option(func(c *config) { c.inNode = on })
}
