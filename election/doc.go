// Package election elects a leader on ZooKeeper: of all processes that run an election at the same path,
// one leads at a time. When the leader ends, or is cut off from the servers for too long, the next one leads.
//
//	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	e, err := election.New(m, "/election/billing", election.WithID("10.0.0.7:8080"))
//	if err != nil {
//		return err
//	}
//	return e.Run(ctx, func(ctx context.Context) error {
//		return bill(ctx) // only here, as long as ctx lasts
//	})
//
// [Election.Run] campaigns, calls its function when this process leads, and campaigns again when the term
// has ended. Any process can ask for the leader ([Election.Leader]) or follow the changes
// ([Election.Observe]), whether it is a candidate or not. An election is a mutex by package queue, the
// leader is its holder, and the other candidates wait in its queue. Use a zklock.Mutex for a piece of
// work that begins and ends, and an election for a role that some process should always have.
//
// An election is shared with Curator's LeaderSelector at the same path, or with its LeaderLatch by
// [WithLeaderLatch].
//
// # Terms
//
// [Term] returns the number of the present term, a fencing token that grows from term to term. Work that
// goes on for a moment after a loss can still write. If that does harm, claim what you write to with the
// term, as the first statement of each transaction, and read behind the claim: package
// [github.com/turnstile-go/turnstile/fence] does that in SQL databases. Or write to ZooKeeper in one
// transaction with the guard of the lease:
//
//	lease, _ := queue.LeaseFrom(ctx)
//	_, err = s.Multi(ctx, lease.Guard(), &zk.SetDataRequest{Path: path, Data: data, Version: -1})
//
// # Once per schedule
//
// To run a job once at each tick of a schedule, on one of many replicas, a leader with a timer is not
// enough: a new leader cannot tell whether the one before it has run the job. Package
// [github.com/turnstile-go/turnstile/schedule] is for that.
//
// # What is guaranteed
//
//   - At no instant are the contexts of two leaders at one path both alive. A leader that is cut off from
//     the servers knows that it has lost the leadership before they can let another one lead.
//   - Candidates lead in the order in which they came. A candidate that has led goes to the end, and so does
//     one whose session was lost while it waited.
//   - Terms grow: no leader has a lower one than a leader before it.
//   - However the function of Run ends, with a panic too, the candidate gives the leadership up.
//   - A candidate whose function fails soon after it was called stands again only after a wait, longer each
//     time: see [Election.Run].
//
// # What is not guaranteed
//
//   - A leader is not always there. After a leader has died, the next one leads when the servers have
//     expired its session: after the session timeout, 10 s by default.
//   - The election cannot stop a function that goes on after its context has ended. Another candidate can
//     lead by then.
//   - An operator who deletes the leader's node lets the next candidate lead at once. The leader learns of
//     it a moment later.
//   - The guarantees assume what [session] assumes of clocks.
//
// # When the leadership is lost
//
// The context of Run's function ends, with a cause that matches [session.ErrLost]. [Election.IsLeader]
// reports false from the same instant. Return from the function then. Run campaigns again. To end the
// process instead, or to log why terms end, use [WithTermEnd].
//
// # Shutdown
//
// Cancel the context of Run and wait until Run has returned, which is nil then: the leadership has been given
// up, and the next candidate leads at once. Then call [session.Manager.Close]. If a process ends without that, the
// next candidate leads when the servers have expired its session.
//
// # Testing
//
// Package [github.com/turnstile-go/turnstile/zktest] has a ZooKeeper server for unit tests. It runs in the
// process. Its Expire ends a session, and so the term of a leader, at a chosen moment.
package election
