// Package history is the record of a run: every operation that every client attempted, with its times and its answer
// ([Op]); how clients record without disturbing the load ([Log], [Recorder]); and the file that survives the process
// ([Writer], [Read]).
//
// A run is one list of operations, and every judgement is made from that list alone. The list is ordered by completion:
// an operation comes where its client learned the outcome or gave up waiting for it.
//
// # From a client to the file
//
// A client's goroutine copies each operation into a chunk of memory that only
// it writes to, and publishes it with one atomic store; it never waits, locks
// or allocates for that. Another goroutine sweeps over all clients periodically and passes new operations to a sink,
// usually [Writer.Append]:
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
// [Log.Watermark] reports after each sweep how far the file is complete, so that it can be judged in completion order while
// it grows. [Open] reads a long one from the disk, a few thousand operations at a time.
//
// Operations passed on by a sweep survive a kill -9 of the process; those recorded after the last sweep do not.
//
// # File format
//
// A history file is append-only. It begins with the eight bytes "OVSHIST\x02"
// (the last is the version), then frames. A frame is
//
//	kind     1 byte: 'H' header, 'S' symbols, 'O' operations, 'T' trailer
//	number   4 bytes, little endian: of the frame in the file, from 0
//	length   4 bytes, little endian: of the payload, at most 16 MiB
//	checksum 4 bytes, little endian: CRC-32C of kind, number and length
//	checksum 4 bytes, little endian: CRC-32C of all of them and the payload
//	payload
//
// The header comes first and the trailer last; both are JSON, and the header has
// at most 1 MiB. A symbols frame lists texts, each with its length as a varint
// before it; they are numbered from 0 in order of appearance, over the whole
// file. An operations frame holds operations as varints, times as differences to
// the one before in the same frame; appendOp, in encode.go, says how. The trailer holds, besides the fields of
// [Trailer], "operations", the number of operations, and "sha256", the digest in hexadecimal of all bytes before its
// frame.
//
// Every frame is written with a single write, so frames written before a kill -9 stay readable. A file that ends
// without a trailer, or inside a frame, is cut off: the operations in it count, and nothing is concluded from missing
// ones. If a frame fails its checksum, does not have the next number, or is invalid, or if the trailer has another
// count or digest, the file is not as it was written: it is damaged ([History].Damaged), and nothing is concluded from
// it.
//
// Files of version 1 had neither numbers nor counts, so that a missing frame could not be noticed. They are not read
// ([ErrVersion]).
//
// # JSON lines
//
// The same history as text, for other tools and from other tools: [WriteJSONL],
// [ReadJSONL]. [Read] takes either form. The first line is the [Header], whose
// schema must be [Schema]; then one operation a line, in any order:
//
//	client      number of the client
//	kind        acquire, extend, release, join, buy, refund, read-state, fault,
//	            enqueue, dequeue, pop, peek, ack, effect, next-id, take, submit
//	key         string or whole number
//	arg         string or whole number; optional where [Kind] names no Arg
//	result      string or whole number; optional, but for what a pop, take, next-id
//	            or read-state got
//	outcome     ok, refused or unknown
//	reason      held, lost, sold-out, stale, repeated, stopped, empty, changed; optional
//	due_ns      when it should have started; optional: when it started
//	call_ns     when it started: nanoseconds since the start of the run
//	return_ns   when the answer came; absent when the outcome is unknown
//	gave_up_ns  with an unknown outcome: when the client gave up waiting;
//	            optional: right before the client went on to anything else, or at
//	            the end of the history
//	until_ns    end of the lease promised, of acquire, extend and take: the start of
//	            the attempt that succeeded plus the lease, less what is allowed for
//	            drift; 0 or absent: it has no end. When the header has a "ttl_ns",
//	            leases do end, and a grant must have this field.
//	session     string or whole number; absent when there is none
//	amount, fence   as in [Op]; absent when zero
//
// The arg of a next-id names the request, to distinguish a request that is sent again from a new one; without it the
// operation is a request of its own. A generator may answer a request again with the number that it gave before: to the
// client that got the first answer, to any client after a try without an answer, and to any client with the reason
// "repeated". If two clients obtain one number for one request in any other way, both were given it as a new number,
// which is a duplicate. The same holds for one number of two requests.
//
// The last line is {"trailer":{"operations":N}}, with the number of operations;
// a history of this program has all of [Trailer] there, and as its last field
// "sha256", the digest of all bytes before the comma in front of it, which the
// header announces with "sealed". A history without such a line is cut
// off. One with another number of operations, or another digest, is damaged.
// No line is longer than 1 MiB.
//
// docs/history.md explains all fields, and tests compare it with this package. In histories of other programs,
// [ReadJSONL] completes the header: the objects and promises that the operations suggest ([Assumed]), and the zero of
// the times. It says so in [History].Remarks.
//
// Names of fields are exact: "Outcome" is not "outcome". Other fields are ignored, with a
// remark. A field that looks like one that the line lacks is an error, and so is a field
// that stands twice in an object. Texts are Unicode: a line is refused that has bytes that
// are not UTF-8, or half of a surrogate pair, because two identities could become one. For
// the same reason, identities are strings or whole numbers of 64 bits: 7, 7.0 and "7" are
// one identity, "7.0" is another, and 7.5 is refused. A byte order mark before the header
// is skipped.
//
// # Sales
//
// A refund is of an order that was bought, or of a part of it. An order may be refunded in several parts, whose sum
// is at most the order. If once-per-order is promised, an order has one refund: another one is the same refund sent
// again, and if both had an effect the promise is broken. An answer "repeated" is not a further refund, and a refund
// without an answer may have had no effect.
//
// A read-state reports how many pieces of a product the server counts: "left" to be sold, "reserved" for orders that
// are not paid, and "sold", net of refunds. The stock is the sum of the three.
//
// # Validity
//
// Reading refuses a history that contradicts itself, because every verdict from it could be
// wrong ([ErrInvalid], with the line, or the number of the operation):
//
//   - No time is negative, and none is later than some 73 years.
//   - The times of one client strictly rise: it calls an operation after the one before has
//     returned, or during one on another object, as a consumer takes the lock of its queue
//     during a pop. Work at the same time is recorded under another client number.
//   - A grant of a lock (an acquire that is not refused) has a session in its arg
//     that no other grant of that lock has; neither 0 nor an empty text. The hold
//     of a take and the request of a pop, in session, are unique in the same way. Operations that refer to a grant are
//     called after it.
//   - Amounts are positive. All purchases of one order of a product are of the same
//     amount. A refund is of an order that was bought, and for no more pieces than that. Unless
//     once-per-order is promised, all answered refunds of an order together are for no more, either.
//   - What is left, reserved and sold is a whole number.
//   - Numbers, lengths of time and probabilities in the header are in range. The expected
//     outcome, if there is one, is "pass" or "violated".
//   - The reason fits the outcome and the kind.
//
// In a history that was cut off, an operation that others refer to may be missing.
package history
