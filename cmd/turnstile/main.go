// Turnstile takes, shows and breaks distributed locks on Apache ZooKeeper from a shell:
//
//	turnstile run /jobs/backup -- ./backup.sh
//
// The locks are those of the Go library github.com/turnstile-go/turnstile and of Apache Curator.
// "turnstile help" lists the commands.
package main

import (
	"os"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/cli"
)

func main() { os.Exit(cli.Main()) }
