package schedule_test

import (
	"os"
	"strings"
	"testing"
)

// The code on the page is that of the examples.
func TestRecipePage(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	must(t, err)
	var code string
	for _, file := range []string{"example_test.go", "../examples/schedule/main.go"} {
		text, err := os.ReadFile(file)
		must(t, err)
		code += string(text)
	}
	_, section, ok := strings.Cut(string(page), "## Once per schedule\n")
	if !ok {
		t.Fatal("the page has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the section has no code")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, block) {
			t.Errorf("no example has this:\n%s", block)
		}
	}
}
