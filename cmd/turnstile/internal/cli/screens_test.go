//go:build linux || darwin || freebsd

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// docScreen is a part of docs/command.md between the lines "<!-- screen NAME -->" and "<!-- /screen -->".
type docScreen struct{ name, text string }

// TestScreens compares the screens in docs/command.md with what the program prints. Times, addresses and numbers differ
// from run to run, and so do not count. -update writes the screens anew.
func TestScreens(t *testing.T) {
	t.Setenv("TZ", "UTC")
	file := filepath.Join("..", "..", "..", "..", "docs", "command.md")
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	page := string(text)
	for _, s := range slices.Concat(screensOfRun(t), screensOfCheck(t), screensOnCall(t)) {
		begin, end := "<!-- screen "+s.name+" -->\n\n", "\n<!-- /screen -->\n"
		head, rest, found := strings.Cut(page, begin)
		shown, tail, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Errorf("the page has no screen %q, which is\n%s", s.name, s.text)
			continue
		}
		if diff := cmp.Diff(screenLines(shown), screenLines(markdown(s.text))); diff != "" && !*update {
			t.Errorf("screen %q differs (-page +program); -update writes it anew:\n%s", s.name, diff)
		}
		page = head + begin + markdown(s.text) + end + tail
	}
	if *update {
		expect.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	}
}

// markdown returns a text as a block of Markdown.
func markdown(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("    "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return b.String()
}

// screenLines returns the lines of a screen without what differs from run to run.
func screenLines(text string) []string {
	text = normal(text)
	for _, r := range []struct{ pattern, with string }{
		{`\d\d:\d\d:\d\d`, "CLOCK"},
		{`127\.0\.0\.1:\d+`, "SERVER"},
		{`[\w.-]+/\d{2,}\b`, "HOST/PID"},
		{`\d+ waiters`, "N waiters"},
		{`token \d+`, "token N"},
		{`-lock-\d{10}`, "-lock-N"},
		{`_c_[0-9a-f-]{36}`, "UUID"},
		{`\b(leader|follower)\b`, "ROLE"},
		{`\b3\.\d+\.\d+\b`, "VERSION"},
		{`\(ZOOKEEPER-.*?\)`, "(DEFECTS)"},
		{`(?m)^ *Warning: (SERVER is slow|At SERVER|The clock).*\n`, ""}, // a busy machine
		{` {2,}`, "  "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return strings.Split(text, "\n")
}

// screensOfRun has a holder, and the loss of the lock.
func screensOfRun(t *testing.T) []docScreen {
	w := newWorld(t, zktest.Start(t).Addr(), "/")
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"the backup begins, with token $TURNSTILE_TOKEN\"\nexec sleep 1000\n"
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "backup.sh"), []byte(script), 0o700))
	cmd := exec.Command(os.Args[0], "run", "--label", "nightly", "/jobs/backup", "--", "./backup.sh")
	cmd.Dir = dir
	holder := startCommand(t, w.addr, cmd)
	zktest.Eventually(t, patience, "the command", func() bool { return strings.HasSuffix(holder.stdout.String(), "\n") })
	nodes, _, err := w.admin.Children("/jobs/backup")
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes %q, %v", nodes, err)
	}
	expect.NoError(t, w.admin.Delete("/jobs/backup/"+nodes[0], -1))
	holder.wait(t, codeLost)
	// The library and run hear of it at the same time, so their lines come in any order. On a busy machine there
	// can be others.
	var lines strings.Builder
	for _, text := range []string{"lock lost: its node was deleted", "ending the command", "turnstile: /jobs/backup is lost"} {
		for line := range strings.Lines(holder.stderr.String()) {
			if strings.Contains(line, text) {
				lines.WriteString(line)
			}
		}
	}
	lost := fmt.Sprintf("$ turnstile %s\n%s%s$ echo $?\n%d\n",
		strings.Join(holder.cmd.Args[1:], " "), holder.stdout.String(), lines.String(), codeLost)
	return []docScreen{{"run lost", lost}}
}

// screensOfCheck has one of three good servers, and one that is down.
func screensOfCheck(t *testing.T) []docScreen {
	e := zktest.StartReal(t, zktest.Servers(3))
	w := newWorld(t, e.Addr(0), "/")
	w.plant(t, "prod/locks", "")
	servers := e.Addr(0) + ",127.0.0.1:1"
	got := call(t.Context(), []string{"TURNSTILE_ZK=" + servers}, "check", "/prod/locks")
	got.want(t, codeNo)
	return []docScreen{{"check", "$ turnstile check --zk " + servers + " /prod/locks\n" + got.stdout}}
}

// screensOnCall has one holder and two waiters.
func screensOnCall(t *testing.T) []docScreen {
	w := newWorld(t, testserver.Server(t).Addr(0), "/prod")
	who := func(n int, label string) string {
		return fmt.Sprintf(`{"id":"web-%d/%d","label":%q}`, n, 4700+n, label)
	}
	w.own(t, "locks/invoice-42/"+uuidA+"lock-0000000000", who(2, "nightly"))
	w.own(t, "locks/invoice-42/"+uuidB+"lock-0000000001", who(7, "request 71"))
	w.own(t, "locks/invoice-42/"+uuidC+"lock-0000000002", who(8, "request 72"))
	var screens []docScreen
	for _, args := range []string{"show /prod/locks/invoice-42", "why /prod/locks/invoice-42", "break --force /prod/locks/invoice-42"} {
		in := strings.NewReader("yes\n")
		var out buffer
		app := &App{In: in, Out: &out, Err: &out, Env: lookup([]string{"TURNSTILE_ZK=" + w.addr})}
		if code := app.Run(t.Context(), strings.Fields(args)); code != 0 {
			t.Errorf("%s: status %d", args, code)
		}
		text := strings.Replace(out.String(), "Type yes: ", "Type yes: yes\n", 1)
		screens = append(screens, docScreen{strings.Fields(args)[0], "$ turnstile " + args + "\n" + text})
	}
	return screens
}

// Every command that the page prints can be run: only the servers are missing here. The table of exit statuses is that of the
// program.
func TestPageCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "command.md"))
	expect.NoError(t, err)
	for _, c := range codes {
		if row := fmt.Sprintf("| %d | %s |\n", c.code, c.meaning); !strings.Contains(string(text), row) {
			t.Errorf("the page lacks %s", row)
		}
	}
	commands := regexp.MustCompile(`(?m)^ {4}(?:\$ |[0-9*/ ]+  )?turnstile (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 10 {
		t.Errorf("%d commands", len(commands))
	}
	for _, m := range commands {
		args := append([]string{"--connect-timeout", "10ms"}, strings.Fields(m[1])...)
		if i := slices.Index(args, "--"); i >= 0 {
			args = append(args[:i+1], "true")
		}
		got := call(t.Context(), []string{"TURNSTILE_ZK=127.0.0.1:1"}, args...)
		if got.code != codeConnect && !(args[2] == "check" && got.code == codeUnusable) {
			t.Errorf("%v: status %d, %s", args, got.code, got.err)
		}
	}
}
