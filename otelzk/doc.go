// Package otelzk records locks with OpenTelemetry: as metrics, and as spans that link each waiter to
// the holder it waits for.
//
//	m, err := session.Connect(ctx, servers, session.WithTrace(otelzk.New()))
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	lock, err := zklock.New(m, "/locks/invoice-42")
//	if err != nil {
//		return err
//	}
//	ctx, span := otel.Tracer("billing").Start(ctx, "charge invoice")
//	defer span.End()
//	return lock.Do(ctx, func(ctx context.Context) error {
//		return charge(ctx, 42) // the trace shows the wait, the hold and the release
//	})
//
// Each Lock, TryLock, hold and Unlock is a span. Its requests to ZooKeeper and its waits for other contenders are child
// spans. The Lock is linked to the span of each holder that it waits for, in any process: the data of a contender's node
// carries the traceparent of its acquisition. Metrics tell locks apart by their kind and their name (zklock.WithName).
// The package's README lists all spans, attributes and metrics, and has a link to the rules for alerts.
//
// A busy TryLock is an outcome and not an error. So is a Lock that its caller cancels, or whose deadline passes. A refusal
// that only describes the tree is not an error either, for example that a node does not exist. The wait for a lock never
// counts as time of the database.
//
// The package imports only OpenTelemetry's API. The providers decide where the data goes. Without an
// SDK nothing is recorded.
package otelzk
