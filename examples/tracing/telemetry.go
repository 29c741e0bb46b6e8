package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// telemetry sends spans and metrics to a collector if OpenTelemetry's environment variable
// names one. Otherwise it prints the spans. It prints the metrics in both cases.
type telemetry struct {
	collector bool
	spans     tree
	meters    *metric.MeterProvider
	metrics   *metric.ManualReader
}

func newTelemetry(ctx context.Context) (*telemetry, error) {
	t := &telemetry{
		collector: os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "",
		metrics:   metric.NewManualReader(),
	}
	opts := []metric.Option{metric.WithReader(t.metrics), metric.WithResource(service("workers"))}
	if t.collector {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, err
		}
		opts = append(opts, metric.WithReader(metric.NewPeriodicReader(exporter)))
	}
	t.meters = metric.NewMeterProvider(opts...)
	return t, nil
}

// tracers returns a provider for a worker of this name, which the caller shuts down.
func (t *telemetry) tracers(ctx context.Context, name string) (*trace.TracerProvider, error) {
	var exporter trace.SpanExporter = &t.spans
	if t.collector {
		var err error
		if exporter, err = otlptracehttp.New(ctx); err != nil {
			return nil, err
		}
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(service(name))), nil
}

func service(name string) *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", name))
}

// finish prints, and sends the last metrics to the collector if there is one.
func (t *telemetry) finish(ctx context.Context, out io.Writer) error {
	if !t.collector {
		t.spans.print(out)
	}
	var all metricdata.ResourceMetrics
	err := t.metrics.Collect(ctx, &all)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			printMetric(out, m)
		}
	}
	return errors.Join(err, t.meters.Shutdown(ctx))
}

// printMetric prints a line for each set of attributes.
func printMetric(out io.Writer, m metricdata.Metrics) {
	var lines []string
	line := func(kv attribute.Set, value string) {
		lines = append(lines, fmt.Sprintf("%-30s %-20s %s\n", m.Name, value, brief(kv)))
	}
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, fmt.Sprintf("%d, mean %.1f ms", p.Count, 1000*p.Sum/float64(p.Count)))
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, fmt.Sprint(p.Value))
		}
	}
	slices.Sort(lines)
	fmt.Fprint(out, strings.Join(lines, ""))
}

// brief returns the attributes without those that are the same in all lines.
func brief(kv attribute.Set) string {
	some, _ := kv.Filter(func(a attribute.KeyValue) bool {
		return strings.HasPrefix(string(a.Key), "zklock.") || a.Key == "db.operation.name" || a.Key == "error.type"
	})
	return some.Encoded(attribute.DefaultEncoder())
}
