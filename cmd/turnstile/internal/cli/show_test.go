package cli

import (
	"strings"
	"testing"
)

func TestShow(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		plantLocks(t, w)
		var all strings.Builder
		for _, args := range []string{
			"invoice", "config", "pool", "java", "python", "golang --wide", "stuck", "mixed", "unused", "evil", "evil --wide",
		} {
			words := strings.Fields(args)
			words[0] = w.top + "/" + words[0]
			got := w.call(t.Context(), append([]string{"show"}, words...)...)
			got.want(t, 0)
			all.WriteString("$ turnstile show " + strings.Join(words, " ") + "\n" + got.stdout + got.err + "\n")
		}
		w.golden(t, "show", all.String())
	})
}

// A path that does not exist, that of a contender, and that of a directory of locks, are told from each other.
func TestShowHints(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	plantLocks(t, w)
	w.call(t.Context(), "show", "/test/nothing").want(t, codeNotFound, "/test/nothing does not exist")
	w.call(t.Context(), "show", "/test/invoice/"+uuidA+"lock-0000000000").want(t, codeUsage, "is the node of a contender. The lock is /test/invoice")
	w.call(t.Context(), "show", "/test/invoice/"+uuidA+"lock-0000000007").want(t, codeNotFound, "has left. The lock is /test/invoice")
	w.call(t.Context(), "show", "/").want(t, codeUsage, "below /")
	got := w.call(t.Context(), "show", "/test")
	got.want(t, 0)
	if want := "/test is no lock: it is a directory with 10 children: turnstile ls /test"; !strings.Contains(got.stdout, want) {
		t.Errorf("%q lacks %q", got.stdout, want)
	}
}

// A command in a hint reaches the same servers as the one that gives the hint.
func TestHintsNameServers(t *testing.T) {
	w := newWorld(t, servedInProcess(t), "/test")
	plantLocks(t, w)
	w.plant(t, "only/child", "")
	for path, want := range map[string]string{"/only": "ls /only", "/stuck": "break --force --node lock-0000000000 /stuck"} {
		want = "turnstile --zk " + w.addr + "/test " + want
		got := call(t.Context(), []string{"TURNSTILE_TIMEOUT=10s"}, "show", "--zk", w.addr+"/test", "--auth", "digest:me:secret", path)
		got.want(t, 0)
		if !strings.Contains(got.stdout, want+"\n") {
			t.Errorf("%q lacks %q", got.stdout, want)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"web-3/4711":   "web-3/4711",
		"ärger 漢":      "ärger 漢",
		"\x1b[31m":     `\x1b[31m`,
		"a\u202eb":     `a\u202eb`,
		"\xff\u009b\n": `\xff\u009b\n`,
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
