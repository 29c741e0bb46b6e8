//go:build !linux

package cli

const daemonEnv = "TURNSTILE_TEST_DAEMON"

func asDaemon() {}
