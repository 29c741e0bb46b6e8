package prose

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	blocks  = regexp.MustCompile("(?s)```.*?```")
	links   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+?) *$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unlike  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Each link in a page leads to a file or a directory of the repository, or to a heading.
func TestLinks(t *testing.T) {
	n := 0
	for _, page := range match(t, pages) {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(blocks.ReplaceAllString(read(t, name), ""), -1) {
			file, anchor, anchored := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			n++
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchored && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, target, anchor)
			}
		}
	}
	if n == 0 {
		t.Error("no page has a link")
	}
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(page string) []string {
	var all []string
	seen := make(map[string]int)
	for _, m := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(page, ""), -1) {
		text := unlike.ReplaceAllString(linked.ReplaceAllString(m[1], "$1"), "")
		name := strings.ReplaceAll(strings.ToLower(text), " ", "-")
		if n := seen[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

func TestAnchors(t *testing.T) {
	const page = "# A lock, for `each` key\n\n```sh\n# no heading\n```\n## From 3.10 on\n### [Why](x.md)\n## From 3.10 on\n"
	if got, want := anchors(page), []string{"a-lock-for-each-key", "from-310-on", "why", "from-310-on-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors %q, want %q", got, want)
	}
}
