package otelzk_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func TestMain(m *testing.M) {
	otel.SetTextMapPropagator(propagation.TraceContext{}) // which makes the links
	testserver.Main(m)
}
