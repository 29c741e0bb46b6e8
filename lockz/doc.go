// Package lockz serves a page about the locks of this process: what it holds, what it waits for and
// behind which contenders, its session, and the locks that it has lost. It is for the person on call,
// like net/http/pprof and expvar.
//
//	m, err := session.Connect(ctx, servers)
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	operators.Handle("/debug/locks", lockz.Handler(m)) // a *http.ServeMux; before the first lock
//
// A browser gets HTML, and "curl -H 'Accept: application/json'" or "curl …?format=json" gets JSON. docs/lockz.md lists its
// fields. Programs decode those that they want, into types of their own.
//
// # What the page shows
//
//   - The session of each manager: the state, the server, the timeout asked for and granted, and how
//     long the holds are certain if no server answers from now on. If there is no connection, why.
//   - Each lock that is held: since when, the node, the fencing token if the process knows it, and the
//     label of queue.WithLabel and the traceparent.
//   - Each acquisition under way: for how long, the holder with its label, or the nearest contender ahead
//     if it is not known which one holds the lock, and how many are ahead. The label is there once the wait
//     has lasted for 20 ms, since the page shows what the wait knows.
//   - The last 20 losses, with their causes.
//
// Everything is of this process. The method Contenders of each lock lists its whole queue.
//
// # What the page does not show
//
// It shows no password, and no key or certificate. It does show paths, labels, traceparents, and the ids of
// contenders: host and process id, or the short text that another client has written into its node. So serve it
// where operators can reach it and users cannot: on an address of its own, or behind the authorization of the service.
//
// The page knows nothing of locks that were held or waited for before [Handler] was called.
//
// # Cost
//
// A request of the page sends nothing to ZooKeeper, and waits for no server and no lock. The page is
// right during an outage, when it matters most: the time for which the holds are certain counts down,
// and a hold is gone from the page in the moment in which it is lost.
//
// Recording takes some 500 bytes for each hold and each acquisition under way, which are free
// again when it ends, and a few microseconds. Holds keep the values of the context that they were
// acquired with, as with any other hooks (session.WithTrace).
package lockz
