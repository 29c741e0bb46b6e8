// Package logbook writes what operators have to know of sessions and connections: a line for each change, and
// in an outage, from time to time, a line with the reasons. It knows servers and reasons, and no session: a
// caller says what has changed.
//
//	log, queue := logbook.Queued(slog.Default())
//	b := logbook.New(log, logbook.Terms{Timeout: 10 * time.Second}, unresolved)
//	b.Begin()
//	b.Failed(&logbook.Failure{Step: logbook.StepDial, To: server, Err: err})
//	b.Connected("0x1dc6acfac000000", server, logbook.Terms{Timeout: 10 * time.Second})
//	queue.Flush(time.Second)
//
// # How much is logged
//
// An outage of an hour makes fewer than 30 lines. The first one comes after 2 seconds without a connection,
// and then they become rarer. A failure of a new kind brings a line early. If connections come and go, or
// servers break the protocol again and again, further lines about that have level debug or are left out.
// Every loss is logged.
//
// # Concurrency
//
// All methods may be called by any number of goroutines at once. Those of a [Logbook] block for no longer
// than its logger does. The logger of [Queued] does not block, so a Logbook that has such a logger may be
// called with a mutex held.
package logbook
