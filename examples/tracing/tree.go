package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// tree is an exporter that keeps spans, to print them as a tree at the end.
type tree struct {
	mu    sync.Mutex
	spans []trace.ReadOnlySpan
}

// ExportSpans implements [trace.SpanExporter].
func (t *tree) ExportSpans(_ context.Context, spans []trace.ReadOnlySpan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, spans...)
	return nil
}

// Shutdown implements [trace.SpanExporter].
func (t *tree) Shutdown(context.Context) error { return nil }

// print prints all spans below their parents, in the order in which they began.
func (t *tree) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.spans, func(a, b trace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, s := range t.spans {
		if !s.Parent().IsValid() {
			fmt.Fprintf(out, "%s:\n", serviceOf(s))
			t.printLocked(out, s, "", "")
			fmt.Fprintln(out)
		}
	}
}

func (t *tree) printLocked(out io.Writer, s trace.ReadOnlySpan, first, rest string) {
	took := s.EndTime().Sub(s.StartTime()).Round(100 * time.Microsecond)
	fmt.Fprintf(out, "%-32s%8s  %s\n", first+s.Name(), took, t.describeLocked(s))
	var children []trace.ReadOnlySpan
	for _, c := range t.spans {
		if c.Parent().SpanID() == s.SpanContext().SpanID() {
			children = append(children, c)
		}
	}
	for i, c := range children {
		if i < len(children)-1 {
			t.printLocked(out, c, rest+"├── ", rest+"│   ")
		} else {
			t.printLocked(out, c, rest+"└── ", rest+"    ")
		}
	}
}

// describeLocked returns the attributes and links of a span that a reader wants to see.
func (t *tree) describeLocked(s trace.ReadOnlySpan) string {
	var words []string
	for _, a := range s.Attributes() {
		switch a.Key {
		case "zklock.outcome", "error.type":
			words = append(words, a.Value.AsString())
		case "zklock.queue.position":
			words = append(words, fmt.Sprintf("%d ahead", a.Value.AsInt64()))
		case "zklock.watched.id":
			words = append(words, "waits for "+t.blockerLocked(s, a))
		}
	}
	return strings.Join(words, ", ")
}

// blockerLocked returns the name of the worker that was ahead. The span of the wait has a link
// to the span in which that worker took the lock. If that span is here, its service has a
// better name than host and process.
func (t *tree) blockerLocked(s trace.ReadOnlySpan, id attribute.KeyValue) string {
	for _, l := range s.Links() {
		if other := t.spanLocked(l.SpanContext.SpanID()); other != nil {
			return serviceOf(other)
		}
	}
	return id.Value.AsString()
}

func (t *tree) spanLocked(id oteltrace.SpanID) trace.ReadOnlySpan {
	for _, s := range t.spans {
		if s.SpanContext().SpanID() == id {
			return s
		}
	}
	return nil
}

func serviceOf(s trace.ReadOnlySpan) string {
	name, _ := s.Resource().Set().Value("service.name")
	return name.AsString()
}
