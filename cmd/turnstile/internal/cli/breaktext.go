package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// who names a contender in a sentence.
func who(c locks.Contender) string {
	if c.ByHand {
		return "the node " + clean(c.Node)
	}
	return short(c.Name(), 60)
}

func verb(c locks.Contender) string {
	if c.Holds {
		return "holds"
	}
	return "waits for"
}

// waiting says how many contenders wait. other is "other " or "".
func waiting(n int, other string) string {
	switch n {
	case 0:
		if other != "" {
			return "nobody else waits"
		}
		return "nobody waits"
	case 1:
		return "1 " + other + "contender waits"
	}
	return fmt.Sprintf("%d %scontenders wait", n, other)
}

// introduce says all that is known of a contender, in a few lines.
func introduce(l *locks.Lock, c locks.Contender, now time.Time) string {
	name, origin := whoCell(c), "session "+c.Session
	switch {
	case c.ByHand:
		name, origin = "A node that was left by hand", "no session owns it"
	case c.ID == "":
		name = "A contender without a name"
	}
	does := verb(c)
	if l.Kind == locks.Conflict {
		does = "contends for"
	}
	behind := 0
	for _, other := range l.Contenders {
		if !other.Holds && other.Path != c.Path {
			behind++
		}
	}
	return fmt.Sprintf("%s %s %s.\n  queued %s ago (%s), %s, %s\n  node %s", name, does, clean(l.Path),
		ago(c.Since, now), stamp(c.Since), origin, waiting(behind, "other "), clean(c.Path))
}

// deaf returns why a contender cannot hear the message of revocation, or "".
func deaf(c locks.Contender) string {
	switch c.Client {
	case locks.ClientHand:
		return fmt.Sprintf("no session owns the node %s, so that nobody can give it up", clean(c.Node))
	case locks.ClientKazoo:
		return fmt.Sprintf("%s uses kazoo, whose locks do not listen to requests", who(c))
	case locks.ClientZKLock:
		return fmt.Sprintf("%s uses zk.Lock of go-zookeeper, which does not listen to requests", who(c))
	}
	if c.Deaf {
		return fmt.Sprintf("%s does not listen to requests: its node says so, as those of versions before 0.1.0 can", who(c))
	}
	return ""
}

// What a contender whose node is deleted will notice.
const (
	oursNotices = `If it is connected, its watch tells it within a moment: Done, Err and its contexts
report the loss. If it is cut off or stopped, its lease clock tells it when it looks, at
the latest when its session timeout (10s by default) is over. Until then it may be at work.`
	othersNotice = `Nothing tells it. It goes on with its work beside the next holder, so stop its process
first if you can.`
)

// consequences says what a contender whose node is deleted will notice, and when, in lines.
func consequences(kind locks.Kind, c locks.Contender) []string {
	return strings.Split(consequence(kind, c), "\n")
}

func consequence(kind locks.Kind, c locks.Contender) string {
	if !c.Holds && kind != locks.Conflict && !c.ByHand {
		return "It waits, and loses its place in the queue.\nClients of this module join the queue again at its end."
	}
	switch c.Client {
	case locks.ClientHand:
		return "No client owns the node: deleting it takes the lock from nobody."
	case locks.ClientOurs:
		return "It uses the Go library turnstile.\n" + oursNotices
	case locks.ClientKazoo:
		return "It uses kazoo, which does not watch its own node.\n" + othersNotice + " Its release reports no error."
	case locks.ClientZKLock:
		return "It uses zk.Lock of go-zookeeper, which does not watch its own node.\n" + othersNotice + " Its Unlock fails with \"node does not exist\"."
	case locks.ClientCurator:
		return "It uses Apache Curator, which does not watch its own node.\n" + othersNotice + " Its release reports no error."
	}
	return "If it uses the Go library turnstile:\n" + indented(oursNotices) + "\nIf it uses Apache Curator or another library:\n" + indented(othersNotice)
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
