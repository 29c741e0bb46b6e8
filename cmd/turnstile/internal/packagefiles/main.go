// Packagefiles writes files of a package of turnstile, which are made of the help: DIR/man and DIR/completions.
// .ci/packages calls it, and so may other makers of packages:
//
//	go run ./internal/packagefiles VERSION SECONDS DIR
//
// VERSION and SECONDS, since 1970, are what the manual pages say of themselves.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/cli"
)

func main() {
	err := errors.New("want VERSION SECONDS DIR")
	if len(os.Args) == 4 {
		err = write(os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packagefiles:", err)
		os.Exit(1)
	}
}

func write(version, date, dir string) error {
	seconds, err := strconv.ParseInt(date, 10, 64)
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(err, os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root := cli.Command()
	head := fmt.Sprintf(`1 "%s" "turnstile %s"`, time.Unix(seconds, 0).UTC().Format(time.DateOnly), version)
	for _, c := range append(root.Commands(), root) {
		file := filepath.Join(man, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		if err := os.WriteFile(file, page(c, head), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "turnstile.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_turnstile")),
		root.GenFishCompletionFile(filepath.Join(completions, "turnstile.fish"), true),
	)
}

// page returns the manual page of a command, in roff: its help as it is.
func page(c *cobra.Command, head string) []byte {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	// Roff prints each character as it is, and a hyphen stays one that can be copied.
	escape := strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace
	text := c.Long + "\n\n" + c.UsageString()
	return fmt.Appendf(nil, ".TH \"%s\" %s\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s.fi\n",
		strings.ToUpper(escape(name)), escape(head), escape(name), escape(c.Short), escape(text))
}
