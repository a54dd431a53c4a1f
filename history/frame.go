package history

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"oversell/internal/phrase"
)

// magic begins every history file; its last byte is the version.
const magic = "OVSHIST\x02"

const (
	frameHead   = 17       // bytes before the payload
	maxPayload  = 16 << 20 // bytes
	maxHeader   = 1 << 20  // bytes of the header, as a frame's payload or a line
	maxFrameOps = 4096     // of a frame by a Writer
)

// frameKind is the kind of a frame's contents.
type frameKind byte

const (
	headerFrame  frameKind = 'H'
	symbolsFrame frameKind = 'S'
	opsFrame     frameKind = 'O'
	trailerFrame frameKind = 'T'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headSum covers the head up to its own checksum. A length is used only if this is right: an altered one must not look
// like a file that ends too early.
func headSum(frame []byte) uint32 { return crc32.Checksum(frame[:9], castagnoli) }

// payloadSum covers the head and the payload.
func payloadSum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:13], castagnoli), castagnoli, frame[frameHead:])
}

// seal fills in the head of a frame whose payload is in place.
func seal(kind frameKind, number uint32, frame []byte) {
	frame[0] = byte(kind)
	binary.LittleEndian.PutUint32(frame[1:], number)
	binary.LittleEndian.PutUint32(frame[5:], uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[9:], headSum(frame))
	binary.LittleEndian.PutUint32(frame[13:], payloadSum(frame))
}

// frame is a checked frame of a file.
type frame struct {
	kind    frameKind
	number  uint32 // of the frame in its file
	at      int    // offset in the file
	payload []byte
}

// end returns the offset of the next frame.
func (f frame) end() int { return f.at + frameHead + len(f.payload) }

// incomplete is the problem of a frame that the end of the file cuts off.
const incomplete = "is incomplete"

// nextFrame reads the frame at offset at of a file's bytes. If there is no valid one it says why.
func nextFrame(data []byte, at int) (f frame, problem string) {
	f, size, problem := headAt(data, at)
	if problem != "" {
		return frame{}, problem
	}
	rest := data[at:]
	if len(rest) < frameHead+size {
		return frame{}, incomplete
	}
	rest = rest[:frameHead+size]
	if binary.LittleEndian.Uint32(rest[13:]) != payloadSum(rest) {
		return frame{}, "fails its checksum"
	}
	f.payload = rest[frameHead:]
	return f, ""
}

// headAt reads the head of a frame, and the size of its payload.
func headAt(data []byte, at int) (f frame, size int, problem string) {
	rest := data[at:]
	if len(rest) < frameHead {
		return frame{}, 0, incomplete
	}
	if binary.LittleEndian.Uint32(rest[9:]) != headSum(rest) {
		return frame{}, 0, "fails its checksum"
	}
	f = frame{kind: frameKind(rest[0]), number: binary.LittleEndian.Uint32(rest[1:]), at: at}
	length := binary.LittleEndian.Uint32(rest[5:])
	limit := uint32(maxPayload)
	if f.kind == headerFrame {
		limit = maxHeader
	}
	if length > limit {
		return frame{}, 0, fmt.Sprintf("is %s long, and at most %s are allowed", phrase.Count(int(length), "byte"), group(int(limit)))
	}
	return f, int(length), ""
}
