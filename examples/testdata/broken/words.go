// Package words counts the words of a text.
package words

import "strings"

// Count answers how often each word of text occurs, in lower case.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Split(text, " ") {
		counts[word]++
	}
	return counts
}

// Longest answers the longest word of text, the first of several.
func Longest(text string) string {
	longest := ""
	for _, word := range strings.Fields(text) {
		if len(word) > len(longest) {
			longest = wrod
		}
	}
	return longest
}
