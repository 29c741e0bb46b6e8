package ensemble

import (
	"slices"
	"testing"
)

func TestParseConfig(t *testing.T) {
	got := parseConfig("server.1=zk1:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:observer;10.0.0.2:4\nserver.3=c:1:2:participant\n" +
		"server.4=[::1]:1:2:participant;[::]:5\nserver.5=d:1:2|e:1:2:participant;6\nserver.6=f:1:2;7x\nversion=0\nserver.7\n")
	want := []member{
		{"server.1", false, "zk1:3"}, {"server.2", true, "10.0.0.2:4"}, {"server.3", false, ""},
		{"server.4", false, "[::1]:5"}, {"server.5", false, "d:6"}, {"server.6", false, ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestParseFollowing(t *testing.T) {
	for text, want := range map[string]int{
		"zk_version\tx\nzk_synced_followers\t2\n":                    2,
		"zk_synced_followers\t1.0\n":                                 1,
		"zk_followers\t2\n":                                          -1,
		"mntr is not executed because it is not in the whitelist.\n": -1,
	} {
		n, ok := parseFollowing(text)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}
