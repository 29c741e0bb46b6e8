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
// The page begins with totals and the last losses with their causes. Then come the acquisitions under way, the longest
// first, with the holder or the nearest contender ahead, the leaders of elections, the locks that are held, and the
// session of each manager. A browser gets HTML, and "curl …?format=json" gets JSON. docs/lockz.md lists its fields.
//
// The page shows no password, and no key or certificate. It does show paths, labels, traceparents, and the ids of
// contenders: host and process id, or the short text that another client has written into its node. So serve it
// where operators can reach it and users cannot: on an address of its own, or behind the authorization of the service.
//
// A request of the page sends nothing to ZooKeeper, and waits for no server and no lock, so it is right during an
// outage: a hold is gone from the page in the moment in which it is lost. The page knows nothing of locks that were held
// or waited for before [Handler] was called.
package lockz
