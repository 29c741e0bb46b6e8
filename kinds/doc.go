// Package kinds has what a kind of lock consists of: the prefixes of its nodes, the policy that says when a
// contender may go, and the configuration that all users of a lock agree on. It also has what a listing
// shows: nodes and contenders. Package queue has the same types under the same names, and makes locks of a
// [Kind].
//
// This is a semaphore of three leases:
//
//	semaphore := &kinds.Kind{
//		Name:     "semaphore",
//		Prefixes: []string{kinds.PrefixLease},
//		Policy: func(me kinds.Node) kinds.Policy {
//			return kinds.Policy{
//				Weight: func(ahead kinds.Node) int { return ahead.Weight },
//				Slack:  3 - me.Weight,
//			}
//		},
//	}
package kinds
