package misusetest

import (
	"os"
	"path/filepath"
	"regexp"
)

var (
	methods  = regexp.MustCompile(`(?m)^method \(\*?(\w+)\)`)
	contexts = regexp.MustCompile(`(?m)^func (\w+)\(([^()]*, )?\w+ context\.Context`)
)

// exported returns the names of a package's exported types that have exported methods, and of its exported functions that
// take a context: from the list of package exportedapi, whose test compares it with the code.
func exported(name string) (names []string, err error) {
	list, err := os.ReadFile(filepath.Join("..", "internal", "tests", "conformance", "exportedapi", "testdata", name+".txt"))
	for _, pattern := range []*regexp.Regexp{methods, contexts} {
		for _, m := range pattern.FindAllStringSubmatch(string(list), -1) {
			names = append(names, m[1])
		}
	}
	return names, err
}
