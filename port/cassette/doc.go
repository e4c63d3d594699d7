// Package cassette is a port that writes down what another port answers, and
// later answers it again without that port: a test of a loop against a real
// model that needs neither the model nor a key.
//
//	Cassette  the port; it records or plays, for as long as it lives
//	Options   the file, the port to record from, and whether to record
//
// # Contract
//
//  1. A cassette whose file is there plays; one whose file is not there records.
//     Options.Record forces one of the two: true begins the file anew, false
//     makes a missing file an error. While it plays, the other port is not asked.
//  2. The n-th call with some model and request gets the n-th answer that was
//     recorded for the two, its deltas before it; failed calls fail again. So
//     calls that run beside each other may come in any order. What the Conf says
//     besides the model is not compared.
//  3. A request that was not recorded fails with kind invalid_request and the
//     places where it differs from the nearest recorded one that is not played
//     yet. There is no way from there to the other port.
//  4. Call ids that the kernel minted differ from run to run and are compared by
//     the order in which they first appear.
//  5. A count is that of its request, a profile that of its model and sizes; an
//     answer that was not recorded is an error. Health is nil while it plays.
//  6. A cancelled call is not recorded: its caller ended it, not the provider.
//
// # File
//
// One JSON object a line; the first says what the file is.
//
//	{"knl_cassette":1}
//	{"call":{"answer":{…},"deltas":[["text","…"],…],"model":"…","request":{…}}}
//	{"call":{"error":{…},"like":{"call":1,"members":["system"],"messages":2},"model":"…","request":{…}}}
//	{"count":{"hash":"…","model":"…","tokens":12}}
//	{"profile":{"context_window":…,"max_tokens":…,"model":"…","answer":{…}}}
//
// like says what the request repeats of that of an earlier call: its first
// messages, and whole members. So a file grows with the conversation and not
// with its square.
//
// A line is written with one append and is on disk before the answer is handed
// on. A last line without its end is what a killed run leaves; it is left out,
// and Options.Note is told.
//
// Keys and headers are not part of what is written. What Options.Mask hides is
// hidden in the file, and in a request before it is compared.
package cassette
