// Package history is the record of a run: every operation that every client
// attempted, when, and what it was told ([Op]); how clients record without
// disturbing the load ([Recorder]); and the file that survives the process
// ([Writer], [Read]).
//
// Everything that happened is one list of operations, and every judgement is
// made from that list alone. The list is ordered by completion: an operation
// stands where its client learned the outcome or gave up waiting for it.
//
// # File format
//
// A history file is append-only. It begins with the eight bytes "OVSHIST\x01"
// (the last is the version), then frames. A frame is
//
//	kind     1 byte: 'H' header, 'S' symbols, 'O' operations, 'T' trailer
//	length   4 bytes, little endian: of the payload
//	checksum 4 bytes, little endian: CRC-32C of kind, length and payload
//	payload
//
// The header and trailer are JSON. A symbols frame lists texts, each with its
// length as a varint; they are numbered in order of appearance. An operations
// frame holds operations as varints, times as differences to the one before in
// the same frame. Every frame is written with a single write, so what was
// written before a kill -9 stays readable: reading stops at the first frame
// that is incomplete or fails its checksum, and says so.
package history
