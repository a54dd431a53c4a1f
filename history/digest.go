package history

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// digest computes the SHA-256 of a file that is being read. It does so in a goroutine of its own, because that takes
// about as long as the rest. It is for one goroutine, which must call close.
type digest struct {
	sum        hash.Hash
	buf        []byte      // not in sum yet
	full, free chan []byte // to the other goroutine and back; nil: it is not needed yet
}

const (
	digestBuffer  = 1 << 16 // bytes
	digestBuffers = 2       // that the other goroutine has, besides buf
)

func newDigest() *digest { return &digest{sum: sha256.New()} }

// write adds bytes.
func (d *digest) write(b []byte) {
	for len(d.buf)+len(b) > digestBuffer {
		n := digestBuffer - len(d.buf)
		d.buf, b = append(d.buf, b[:n]...), b[n:]
		d.handOver()
	}
	d.buf = append(d.buf, b...)
}

// handOver exchanges buf for an empty one.
func (d *digest) handOver() {
	if d.full == nil {
		d.start()
	}
	d.full <- d.buf
	d.buf = <-d.free
}

func (d *digest) start() {
	d.full, d.free = make(chan []byte), make(chan []byte, digestBuffers)
	for range digestBuffers {
		d.free <- make([]byte, 0, digestBuffer)
	}
	go func() {
		for b := range d.full {
			d.sum.Write(b)
			d.free <- b[:0]
		}
	}()
}

// text returns the digest of all bytes so far, in hexadecimal.
func (d *digest) text() string {
	if d.full != nil {
		var free [digestBuffers][]byte
		for i := range free { // all of them: the other goroutine is idle
			free[i] = <-d.free
		}
		for _, b := range free {
			d.free <- b
		}
	}
	d.sum.Write(d.buf)
	d.buf = d.buf[:0]
	return hex.EncodeToString(d.sum.Sum(nil))
}

// close ends the other goroutine.
func (d *digest) close() {
	if d.full != nil {
		close(d.full)
	}
}
