package otelzk

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option changes what [New] does. A nil option is ignored.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	tracers        trace.TracerProvider
	meters         metric.MeterProvider
	attributes     []attribute.KeyValue
	requestSpans   bool
	requestMetrics bool
}

func newConfig(opts []Option) config {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider(), requestSpans: true, requestMetrics: true}
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	return c
}

// WithTracerProvider sets the provider of spans. Default, also for nil: the global provider
// at the time of [New].
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) {
		if p != nil {
			c.tracers = p
		}
	})
}

// WithMeterProvider sets the provider of metrics. Default, also for nil: the global provider
// at the time of [New].
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) {
		if p != nil {
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

// WithRequestSpans says whether requests to ZooKeeper have spans. Default: true.
func WithRequestSpans(on bool) Option {
	return option(func(c *config) { c.requestSpans = on })
}

// WithRequestMetrics says whether db.client.operation.duration is recorded. It has a histogram for each operation and
// each server. Default: true.
func WithRequestMetrics(on bool) Option {
	return option(func(c *config) { c.requestMetrics = on })
}
