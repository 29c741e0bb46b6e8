// Packagefiles writes files of a package of turnstile. .ci/packages calls it, and so may other makers of packages:
//
//	go run ./internal/packagefiles help VERSION SECONDS DIR    # DIR/man and DIR/completions, which are made of the help
//	go run ./internal/packagefiles sbom BINARY                 # the list of the modules in a binary, as CycloneDX
//
// VERSION and SECONDS, since 1970, are what the manual pages say of themselves.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/cli"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/manual"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packagefiles:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "help":
		return writeHelp(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "sbom":
		return printSBOM(args[1])
	}
	return fmt.Errorf("want help VERSION SECONDS DIR, or sbom BINARY, and not %q", args)
}

func writeHelp(version, date, dir string) error {
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return err
	}
	root := cli.Command()
	pages := manual.Pages(root, manual.Source{Version: version, Date: time.Unix(seconds, 0)})
	if err := writePages(filepath.Join(dir, "man"), pages); err != nil {
		return err
	}
	return writeCompletions(filepath.Join(dir, "completions"), root)
}

func printSBOM(binary string) error {
	list, err := modulesOf(binary)
	if err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

func writePages(dir string, pages map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func writeCompletions(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(file string) error{
		"turnstile.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_turnstile":     root.GenZshCompletionFile,
		"turnstile.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
