package quiethooks

import (
	"context"
	"reflect"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/session"
)

// hooks are the ways to see what a manager does. Each adds options to it, and looks once it is there.
var hooks = map[string]func() (opts []session.Option, look func(*session.Manager)){
	"all hooks": func() ([]session.Option, func(*session.Manager)) { return traced(everything()), nil },
	"Request alone": func() ([]session.Option, func(*session.Manager)) {
		return traced(session.Trace{Request: everything().Request}), nil
	},
	"Watch alone": func() ([]session.Option, func(*session.Manager)) {
		return traced(session.Trace{Watch: everything().Watch}), nil
	},
	"Retry alone": func() ([]session.Option, func(*session.Manager)) {
		return traced(session.Trace{Retry: everything().Retry}), nil
	},
	"otelzk": func() ([]session.Option, func(*session.Manager)) { return traced(recording()), nil },
	"lockz": func() ([]session.Option, func(*session.Manager)) {
		return nil, func(m *session.Manager) { lockz.Handler(m) }
	},
	"otelzk and lockz": func() ([]session.Option, func(*session.Manager)) {
		return traced(recording()), func(m *session.Manager) { lockz.Handler(m) }
	},
}

func traced(all ...session.Trace) (opts []session.Option) {
	for _, t := range all {
		opts = append(opts, session.WithTrace(t))
	}
	return opts
}

// recording is otelzk with providers that record everything.
func recording() session.Trace {
	return otelzk.New(
		otelzk.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder()))),
		otelzk.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
}

// everything has all hooks, which look at all that they are told.
func everything() session.Trace {
	type key struct{}
	ended := func(error) {}
	within := func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, "hook") }
	return session.Trace{
		Traceparent: func(context.Context) string { return "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			return within(ctx), ended
		},
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			w.Known()
			return within(ctx), func(error) { w.Known() }
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return within(ctx), func(session.AcquireResult) {}
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			return within(ctx), ended
		},
		Hold: func(context.Context, session.HoldInfo) func(error) { return ended },
		Loss: func(context.Context, session.HoldInfo, error) {},

		Retry: func(context.Context, session.RetryInfo) {},
		State: func(session.Change) {},
	}
}

// Every hook of a Trace is in everything.
func TestEverything(t *testing.T) {
	all := reflect.ValueOf(everything())
	for i := range all.NumField() {
		if all.Field(i).IsNil() {
			t.Errorf("there is no hook %s", all.Type().Field(i).Name)
		}
	}
}
