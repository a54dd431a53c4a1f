package history

import (
	"encoding/binary"
	"hash/crc32"
)

// magic begins every history file; its last byte is the version.
const magic = "OVSHIST\x01"

const (
	frameHead   = 9        // bytes before the payload
	maxPayload  = 16 << 20 // bytes
	maxFrameOps = 4096     // what a Writer puts into one frame
)

// frameKind tells what a frame holds.
type frameKind byte

const (
	headerFrame  frameKind = 'H'
	symbolsFrame frameKind = 'S'
	opsFrame     frameKind = 'O'
	trailerFrame frameKind = 'T'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers a whole frame but for the checksum's own four bytes.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:5], castagnoli), castagnoli, frame[frameHead:])
}

// seal fills in the head of a frame whose payload is in place.
func seal(kind frameKind, frame []byte) {
	frame[0] = byte(kind)
	binary.LittleEndian.PutUint32(frame[1:], uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[5:], checksum(frame))
}

// frame is a checked frame of a file.
type frame struct {
	kind    frameKind
	at      int // offset in the file
	payload []byte
}

// end is the offset of the next frame.
func (f frame) end() int { return f.at + frameHead + len(f.payload) }

// incomplete is the problem of a frame that the end of the file cuts off.
const incomplete = "is incomplete"

// nextFrame reads the frame at offset at of a file's bytes. When there is none
// that can be trusted it tells why.
func nextFrame(data []byte, at int) (f frame, problem string) {
	rest := data[at:]
	if len(rest) < frameHead {
		return frame{}, incomplete
	}
	size := binary.LittleEndian.Uint32(rest[1:])
	if size > maxPayload {
		return frame{}, "claims to be longer than any frame can be"
	}
	if uint64(len(rest)) < frameHead+uint64(size) {
		return frame{}, incomplete
	}
	rest = rest[:frameHead+int(size)]
	if binary.LittleEndian.Uint32(rest[5:]) != checksum(rest) {
		return frame{}, "fails its checksum"
	}
	return frame{kind: frameKind(rest[0]), at: at, payload: rest[frameHead:]}, ""
}
