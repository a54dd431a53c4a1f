// Package history is the record of a run: every operation that every client
// attempted, when, and what it was told ([Op]); how clients record without
// disturbing the load ([Log], [Recorder]); and the file that survives the
// process ([Writer], [Read]).
//
// Everything that happened is one list of operations, and every judgement is
// made from that list alone. The list is ordered by completion: an operation
// stands where its client learned the outcome or gave up waiting for it.
//
// # From a client to the file
//
// A client's goroutine copies each operation into a chunk of memory that only
// it writes to, and publishes it with one atomic store; it never waits, locks
// or allocates for that. One other goroutine sweeps over all clients every so
// often and hands what it finds to a sink, usually [Writer.Append]:
//
//	log := history.NewLog(time.Now())
//	file, err := history.Create(path, header)
//	...
//	go func() { drained <- log.DrainEvery(ctx, 100*time.Millisecond, file.Append) }()
//
//	rec := log.Recorder(client) // in the client's goroutine
//	op := history.Op{Kind: history.Buy, Key: product, Arg: history.Int(order), Call: rec.Now()}
//	...
//	op.Outcome, op.Return = history.OK, rec.Now()
//	rec.Record(op)
//
//	stop() // when all clients have returned: cancels ctx, which brings the last sweep
//	err = errors.Join(<-drained, file.Finish(trailer))
//
// What a sweep has handed over survives a kill -9 of the process; what was
// recorded after the last sweep does not.
//
// # File format
//
// A history file is append-only. It begins with the eight bytes "OVSHIST\x01"
// (the last is the version), then frames. A frame is
//
//	kind     1 byte: 'H' header, 'S' symbols, 'O' operations, 'T' trailer
//	length   4 bytes, little endian: of the payload, at most 16 MiB
//	checksum 4 bytes, little endian: CRC-32C of kind, length and payload
//	payload
//
// The header comes first and the trailer last; both are JSON. A symbols frame
// lists texts, each with its length as a varint before it; they are numbered
// from 0 in order of appearance, over the whole file. An operations frame holds
// operations as varints, times as differences to the one before in the same
// frame; appendOp, in encode.go, says how. Every frame is written with a single write, so
// what was written before a kill -9 stays readable: reading stops at the first
// frame that is incomplete or fails its checksum, and says so.
//
// # JSON lines
//
// The same history as text, for other tools and from other tools: [WriteJSONL],
// [ReadJSONL]. [Read] takes either form. The first line is the [Header], whose
// schema must be [Schema]; then one operation a line, in any order:
//
//	client      number of the client
//	kind        acquire, extend, release, join, buy, refund, read-state, fault
//	key         string or number
//	arg         string or number, optional
//	result      string or number, optional
//	outcome     ok, refused or unknown
//	reason      held, lost, sold-out, stale, repeated, stopped; optional
//	due_ns      when it should have started; optional: when it started
//	call_ns     when it started: nanoseconds since the start of the run
//	return_ns   when the answer came; absent when the outcome is unknown
//	gave_up_ns  with an unknown outcome: when the client gave up waiting;
//	            optional: the largest return on the lines above
//	until_ns    end of the lease promised; optional
//	amount, fence, session   as in [Op]; absent when zero
//
// The last line may be {"trailer":{…}}. Other fields are ignored.
package history
