package locks

import (
	"encoding/json"
	"math"
)

// nodeData is what the locks of this library write into the nodes of contenders, as far as the command shows it.
type nodeData struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Traceparent string `json:"traceparent"`
	Revocable   *bool  `json:"revocable"` // false in nodes of versions before 0.1.0 whose holder hears no revocation
}

func (d nodeData) deaf() bool { return d.Revocable != nil && !*d.Revocable }

// longestData bounds data that is parsed. Longer data is the user's own.
const longestData = 4096

// parseData parses the data of a contender's node. It returns false if the data has no id in the form of this library.
func parseData(data []byte) (d nodeData, ours bool) {
	if len(data) > longestData || json.Unmarshal(data, &d) != nil || d.ID == "" {
		return nodeData{}, false
	}
	return d, true
}

// limitData is what package semaphore writes into the directory of a semaphore, as far as the command shows it.
type limitData struct {
	MaxLeases int  `json:"maxLeases"`
	Default   bool `json:"default"` // the limit is the one that New was given
}

// parseLimit parses the data of a directory. It reports whether the data is a semaphore's.
func parseLimit(data []byte) (l limitData, ours bool) {
	err := json.Unmarshal(data, &l)
	return l, err == nil && l.MaxLeases >= 1 && l.MaxLeases <= math.MaxInt32
}
