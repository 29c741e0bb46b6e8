// Package otelzk shows locks to OpenTelemetry: as spans, linked to those who stand in the
// way, and as metrics.
//
//	m, err := session.Connect(ctx, servers, session.WithTrace(otelzk.New()))
//
// Every Lock and TryLock is a span, and so are every hold and every Unlock; below them lie the
// requests to ZooKeeper, by the conventions for database clients, and the wait for others. That
// wait is linked to the span of whoever is waited for, in whatever process: a contender's node
// carries the traceparent of its acquisition. No request is made for any of this.
//
// Contention in TryLock, and a Lock that its caller cancels or whose deadline passes, are outcomes
// and not errors. Nor are refusals that say how the tree is, such as that a node is not there.
// The time spent waiting for a lock is never counted as time of the database.
//
// All names are in the table of the package's README. This package imports OpenTelemetry's
// API alone; what becomes of the data is for the providers to say.
package otelzk
