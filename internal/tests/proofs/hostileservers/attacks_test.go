package hostileservers

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// attacks are the scripts with a name.
var attacks = []struct {
	name   string
	script []step
	says   string // what the log or an error says of it; "" if it goes unnoticed
}{
	{"none", nil, ""},
	{"a greeting of 2 GB", []step{{name: "set length", on: aGreeting, arg: 0x7fffffff}}, "an answer of 2147483647 bytes"},
	{"a greeting of negative length", []step{{name: "set length", on: aGreeting, arg: 0xffffffff}}, "-1 bytes long"},
	{"a greeting cut short", []step{{name: "shorten", on: aGreeting, arg: 20}}, "handshake of 20 bytes"},
	{"half a greeting, and nothing more", []step{{name: "lose bytes", on: aGreeting, arg: 20}}, ""},
	{"a negative session timeout", []step{{name: "set timeout", on: aGreeting, arg: 0}}, "session timeout of -1 ms"},
	{"a session timeout of 25 days", []step{{name: "set timeout", on: aGreeting, arg: 5}}, "session timeout of 596h31m23.647s"},
	{"a session timeout of 1 ms", []step{{name: "set timeout", on: aGreeting, arg: 2}}, "session timeout of 1ms"},
	{"a huge password", []step{{name: "set password length", on: aGreeting, arg: 1 << 30}}, "password of 1073741824 bytes"},
	{"a negative password", []step{{name: "set password length", on: aGreeting, arg: 0xffffffff}}, "password of -1 bytes"},
	{"another session after a reconnect", []step{
		{name: "hang up", on: aListing},
		{name: "set session", on: aGreeting, arg: 2},
	}, "another session"},
	{"no session after a reconnect", []step{
		{name: "hang up", on: aListing},
		{name: "set session", on: aGreeting, arg: 0},
	}, "expired"},
	{"text", []step{{name: "text", after: 3}}, "so this is no ZooKeeper server"},
	{"a frame of no bytes", []step{{name: "set length", on: aListing}}, "0 bytes long"},
	{"a frame of negative length", []step{{name: "set length", on: aListing, arg: 0xfffffff0}}, "-16 bytes long"},
	{"a frame of 2 GB", []step{{name: "set length", on: aListing, arg: 0x7fffffff}}, "an answer of 2147483647 bytes"},
	{"the reply to a create is lost", []step{{name: "drop", on: aCreated}}, "which is not due"},
	{"it is that of another request", []step{{name: "set xid", on: aCreated, arg: 7777}}, "an answer to request 7777"},
	{"it comes twice", []step{{name: "repeat", on: aCreated}}, "an answer to request"},
	{"it has no path", []step{{name: "shorten", on: aCreated, arg: 16}}, "impossible length"},
	{"it has half a path", []step{{name: "shorten", on: aCreated, arg: 30}}, "impossible length"},
	{"it names another's node", []step{{name: "set path", on: aCreated}}, "the server made"},
	{"it names another's node, again and again", []step{{name: "set path", arg: 1}, {name: "set path"}, {name: "set path", arg: 1}}, "the server made"},
	{"it names a directory", []step{{name: "set path", arg: 2}}, "the server made"},
	{"it names nothing", []step{{name: "set path", arg: 4}}, "the server made"},
	{"replies change places", []step{{name: "swap", on: aListing, after: 1}}, "which is not due"},
	{"a reply of before comes again", []step{{name: "replay", on: aListing, arg: 1}}, "an answer to request"},
	{"a listing without its end", []step{{name: "shorten", on: aListing, arg: 30}}, ""},
	{"a listing of nothing", []step{{name: "shorten", on: aListing, after: 1, arg: 16}}, "impossible length"},
	{"a listing of 2 billion names", []step{{name: "set count", on: aListing, after: 1, arg: 0x7fffffff}}, "impossible length"},
	{"a listing of fewer names than it has", []step{{name: "set count", on: aListing, after: 1, arg: 0}}, "left over"},
	{"a listing of -1 names", []step{{name: "set count", on: aListing, after: 1, arg: 0xffffffff}}, "impossible length"},
	{"2 GB of data", []step{{name: "set count", on: aNode, arg: 0x7fffffff}}, "impossible length"},
	{"a listing that goes on", []step{{name: "lengthen", on: aListing, after: 1, arg: 99}}, "left over"},
	{"a transaction of the far future", []step{{name: "set zxid", on: aListing, arg: 0}, {name: "hang up"}}, "zookeeper session lost"},
	{"an event that says the session has expired", []step{{name: "session event", arg: 0, after: 5}}, "a watch event of type -1"},
	{"an event that says it is disconnected", []step{{name: "session event", arg: 1, after: 5}}, "a watch event of type -1"},
	{"an event of an unknown type", []step{{name: "unknown event", after: 5}}, "a watch event of type 5"},
	{"an event cut short", []step{{name: "event of no path", after: 5, arg: 3}}, "impossible length"},
	{"an event that nobody asked for", []step{{name: "event elsewhere", after: 5}, {name: "event elsewhere", arg: 3}}, ""},
	{"the news of a node's end is lost", []step{{name: "drop", on: anEvent}}, ""},
	{"it is, again and again", []step{{name: "drop", on: anEvent}, {name: "drop", on: anEvent}, {name: "drop", on: anEvent}}, ""},
	{"a byte at a time", []step{{name: "dribble", on: aGreeting}, {name: "dribble", on: aListing}}, ""},
	{"noise", []step{{name: "noise", after: 9, arg: 59}}, ""},
	{"the length of the next frame for the error code of a create", []step{{name: "lose bytes", on: aCreated, arg: codeAt}}, ""},

	{"an error code unknown to all", []step{{name: "set code", on: aCreated, arg: 0xffffff00}}, "unknown error: -256"},
	{"an error code that no server has", []step{{name: "set code", on: aCreated, arg: 4711}}, "error code 4711"},
	{"a create refused as closing", []step{{name: "set code", on: aCreated, arg: 0xffffff8c}}, ""},
	{"a listing refused as a lost connection", []step{{name: "set code", on: aListing, arg: 0xfffffffc}}, ""},
	{"a child with a slash", []step{{name: "odd name", on: aListing, after: 1, arg: 2}}, "a child called"},
	{"a child without a name", []step{{name: "odd name", on: aListing, after: 1, arg: 0}}, "a child called"},
	{"a child that is no UTF-8", []step{{name: "odd name", on: aListing, after: 1, arg: 5}}, ""},
	{"another's node for a create's", []step{{name: "set sequence", on: aCreated, arg: 12345}}, ""},
	{"a deletion that was none", []step{{name: "deletion", after: 9}}, ""},
}

func TestAttacks(t *testing.T) {
	for _, k := range kinds[:longtest.Pick(1, len(kinds))] {
		for _, a := range attacks {
			t.Run(k.name+"/"+a.name, func(t *testing.T) {
				log := strings.Join(attack(t, a.script, k), "\n")
				// The scripts are made for a fair mutex: another lock may be asking for
				// something else at that moment.
				if k.name == "fair" && !strings.Contains(log, a.says) {
					t.Errorf("nothing says %q", a.says)
				}
			})
		}
	}
}
