package zktest

import "time"

// Run runs a test twice, as two subtests: on a server in this process, and on a real one. Both have ticks of 500ms and
// session timeouts of 1s to 60s unless an option says otherwise. The test gets a proxy in front of the server. Its
// clients connect to [Proxy.Addr], and all that goes wrong for them does so in both runs alike. Without ZooKeeper on
// this machine the second run is skipped, or fails if [RequireEnv] is set.
//
//	zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
//		m, err := session.Connect(t.Context(), zk.Addr())
//		…
//		err = zk.ExpireHolder(t.Context(), "/locks/report")
//		…
//	})
func Run[T interface {
	TB
	Run(name string, test func(T)) bool
}](t T, test func(t T, zk *Proxy), opts ...CommonOption) {
	t.Helper()
	t.Run("in process", func(t T) {
		like := []Option{TickTime(500 * time.Millisecond), MaxSessionTimeout(time.Minute)}
		for _, o := range opts {
			like = append(like, o)
		}
		if srv := Start(t, like...); srv != nil {
			test(t, StartProxy(t, srv.Addr()))
		}
	})
	t.Run("real", func(t T) {
		var real []RealOption
		for _, o := range opts {
			real = append(real, o)
		}
		if e := StartReal(t, real...); e != nil {
			test(t, StartProxy(t, e.Addr(0)))
		}
	})
}
