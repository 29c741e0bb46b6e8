package ensemble

import (
	"strings"
	"testing"
)

func TestDefectsOf(t *testing.T) {
	for version, want := range map[string]string{
		"3.6.4":           "", // not maintained
		"3.7.2":           "ZOOKEEPER-4785 ZOOKEEPER-4712",
		"3.8.0":           "ZOOKEEPER-4785 ZOOKEEPER-4712",
		"3.8.4":           "ZOOKEEPER-4785 ZOOKEEPER-4712",
		"3.8.5":           "ZOOKEEPER-4712",
		"3.8":             "ZOOKEEPER-4785 ZOOKEEPER-4712",
		"3.9.1":           "ZOOKEEPER-4785 ZOOKEEPER-4712",
		"3.9.2":           "ZOOKEEPER-4712",
		"3.9.3":           "ZOOKEEPER-4925",
		"3.9.3-1":         "ZOOKEEPER-4925",
		soundRelease:      "",
		"3.9.10":          "",
		"3.10.0-SNAPSHOT": "",
		"4.0.0":           "",
		"":                "",
		"3":               "",
		"3.x.1":           "",
	} {
		if got := strings.Join(defectsOf(version), " "); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
