package lockz_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var write = flag.Bool("write", false, "write testdata/page.json anew")

const golden = "testdata/page.json"

// The JSON of a page is what programs read. A change of it is a change of the API.
func TestGolden(t *testing.T) {
	_, got := realistic(t)
	if *write {
		must(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the JSON is another (-want +got); if that is meant: go test ./lockz -run TestGolden -write\n%s", diff)
	}
}
