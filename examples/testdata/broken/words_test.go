package words

import (
	"maps"
	"testing"
)

func TestCount(t *testing.T) {
	got := Count("The cat  and\nthe dog")
	want := map[string]int{"the": 2, "cat": 1, "and": 1, "dog": 1}
	if !maps.Equal(got, want) {
		t.Errorf("Count: got %v, want %v", got, want)
	}
}

func TestLongest(t *testing.T) {
	if got := Longest("a bb cc"); got != "bb" {
		t.Errorf("Longest: got %q, want %q", got, "bb")
	}
}
