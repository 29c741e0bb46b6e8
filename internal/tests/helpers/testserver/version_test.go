package testserver

import "testing"

func TestReleaseHas(t *testing.T) {
	for text, want := range map[string]bool{
		"3.4.13-1--1, built on 2021": false, "3.7.9": false, "3.8.0": false, "3.8.3-deb": false, "3.8.4": true,
		"3.9.1": false, "3.9.2": true, "3.9.3-": true, "3.10.0": true, "4.0": true,
	} {
		r, err := ParseRelease(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Has(Release{3, 8, 4}, Release{3, 9, 2}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{"", "x", "3", "v3.8.0"} {
		if r, err := ParseRelease(bad); err == nil {
			t.Errorf("%q: %v", bad, r)
		}
	}
}
