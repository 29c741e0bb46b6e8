// Packagefiles writes files of a package of turnstile. .ci/packages calls it, and so may other makers of packages:
//
//	go run ./internal/packagefiles help VERSION SECONDS DIR    # DIR/man and DIR/completions, which are made of the help
//	go run ./internal/packagefiles sbom BINARY                 # the list of the modules in a binary, as CycloneDX
//
// VERSION and SECONDS, since 1970, are what the manual pages say of themselves.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/cli"
)

func main() {
	args, err := os.Args[1:], error(nil)
	switch {
	case len(args) == 4 && args[0] == "help":
		err = writeHelp(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "sbom":
		err = printSBOM(args[1])
	default:
		err = fmt.Errorf("want help VERSION SECONDS DIR, or sbom BINARY, and not %q", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packagefiles:", err)
		os.Exit(1)
	}
}

func writeHelp(version, date, dir string) error {
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

// component is a module in a list of software (software bill of materials), in the JSON of CycloneDX 1.5.
type component struct {
	Type    string              `json:"type"`
	Ref     string              `json:"bom-ref"`
	Name    string              `json:"name"`
	Version string              `json:"version"`
	Purl    string              `json:"purl"`
	Hashes  []map[string]string `json:"hashes,omitempty"`
}

// printSBOM prints the list of what is in a binary, as the go command has written it there: modules, and Go's own library as
// "std". It has neither a time nor a serial number, so that the same binary has the same list.
func printSBOM(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	all := []*debug.Module{&info.Main, {Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	var components []component
	var refs []string
	for _, m := range append(all, info.Deps...) {
		if m.Version == "(devel)" { // the library, from the same commit
			m.Version = info.Main.Version
		}
		purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
		c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, Purl: purl}
		if m.Sum != "" { // that of go.sum: the SHA-256 of the list of its files and their sums
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if err != nil {
				return fmt.Errorf("sum of %s: %w", m.Path, err)
			}
			c.Hashes = []map[string]string{{"alg": "SHA-256", "content": hex.EncodeToString(sum)}}
		}
		components, refs = append(components, c), append(refs, purl)
	}
	components[0].Type = "application"
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": map[string]any{"component": components[0]},
		"components": components[1:], "dependencies": []any{map[string]any{"ref": refs[0], "dependsOn": refs[1:]}},
	})
}
