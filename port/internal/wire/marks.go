package wire

// Ends answers where the last turns of the user's end, the latest first: at most so
// many. speaks says whether the user speaks in a message; neighbours in which he does
// are one turn.
//
// A provider that keeps a prompt up to a mark is given two: the latest end is written
// now, and the one before was written by the request before. So whatever was written
// is found again, however much came between.
func Ends(messages, most int, speaks func(message int) bool) (at []int) {
	for i := messages - 1; i >= 0 && len(at) < most; i-- {
		if speaks(i) && (i == messages-1 || !speaks(i+1)) {
			at = append(at, i)
		}
	}
	return at
}
