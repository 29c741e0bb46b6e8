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
// The package's README has a picture of such a trace, the names of all spans, attributes and
// metrics, and a link to the rules for alerts.
//
// # What is recorded
//
//   - Each Lock, TryLock, hold and Unlock is a span. The requests to ZooKeeper are its children, and
//     follow the conventions for database clients. The wait for other contenders is a child too.
//   - The Lock is linked to the span of each holder that it waits for, in any process, and the wait to that
//     of the contender that it watches. The links need no request: the data of a contender's node carries
//     the traceparent of its acquisition, and a wait of more than 20 ms reads it in any case. A shorter wait
//     has no link. OpenTelemetry's global propagator writes and reads the traceparent: see [New].
//   - Metrics have the durations of acquisitions, holds and requests, and count waiters, held locks,
//     losses, and changes of the session's state. Gauges tell how old the oldest hold and the oldest
//     wait are, and the state of the session.
//   - The name of a lock (zklock.WithName) is on its metrics and spans, and the label of an acquisition
//     (queue.WithLabel) is on its spans.
//
// # What is not an error
//
// A busy TryLock is an outcome and not an error. So is a Lock that its caller cancels, or whose deadline
// passes. A refusal that only describes the tree is not an error either, for example that a node does
// not exist.
//
// The wait for a lock never counts as time of the database.
//
// The package imports only OpenTelemetry's API. The providers decide where the data goes. Without an
// SDK nothing is recorded.
package otelzk
