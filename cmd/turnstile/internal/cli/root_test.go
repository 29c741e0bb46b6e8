package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Bad flags and arguments are errors before any I/O, from the command line and from the
// environment alike.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		env, args, want string
	}{
		{args: "nonsense", want: `unknown command "nonsense"`},
		{args: "version --nonsense", want: "unknown flag: --nonsense"},
		{args: "version more", want: `unknown command "more"`},
		{args: "version --timeout soon", want: `invalid argument "soon"`},
		{args: "version --connect-timeout 0s", want: "--connect-timeout 0s is not positive"},
		{args: "version --cert a", want: "--cert and --key go together"},
		{args: "version", env: "TURNSTILE_TIMEOUT=soon", want: "environment variable TURNSTILE_TIMEOUT"},
		{args: "version", env: "TURNSTILE_TLS=perhaps", want: "environment variable TURNSTILE_TLS"},
	} {
		got := call(t.Context(), []string{c.env}, strings.Fields(c.args)...)
		got.want(t, codeUsage, c.want, "turnstile help")
	}
}

// Help and completions work although a variable is wrong: they are where its user finds out. Other commands say what is
// wrong with it, before any I/O.
func TestHelpInBadEnvironment(t *testing.T) {
	for _, env := range []string{"TURNSTILE_TIMEOUT=soon", "TURNSTILE_TLS=perhaps", "TURNSTILE_CERT=a"} {
		for _, args := range []string{
			"help", "--help", "-h", "help run", "run --help", "ls -h", "completion bash", "completion fish", "__complete r",
			"__completeNoDesc r", "--version", "",
		} {
			got := call(t.Context(), []string{env}, strings.Fields(args)...)
			if got.want(t, 0); got.stdout == "" {
				t.Errorf("%s turnstile %s prints nothing", env, args)
			}
		}
		got := call(t.Context(), []string{env, "TURNSTILE_ZK=127.0.0.1:1"}, "ls")
		got.want(t, codeUsage, "turnstile help")
	}
}

// The help fits a screen, and has all commands.
func TestHelpFitsScreen(t *testing.T) {
	for _, args := range []string{"--help", "help", ""} {
		got := call(t.Context(), nil, strings.Fields(args)...)
		got.want(t, 0)
		lines := strings.Split(got.stdout, "\n")
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
		if len(lines) > 24 || !strings.Contains(got.stdout, "turnstile jobs") || !strings.Contains(got.stdout, "exit-codes") {
			t.Errorf("%d lines:\n%s", len(lines), got.stdout)
		}
	}
}
