package javaserver

import "testing"

func TestFreePortsDiffer(t *testing.T) {
	nodes, err := FreePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, n := range nodes {
		for _, port := range []int{n.Client, n.Quorum, n.Election, n.Secure} {
			if port == 0 || seen[port] {
				t.Errorf("port %d in %v is 0 or there twice", port, nodes)
			}
			seen[port] = true
		}
	}
}
