// Package digest computes the SHA-256 of data in a goroutine of its own, beside whatever else is done with the data.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Digest is the SHA-256 of the bytes written so far. It is for one goroutine, which must close it.
type Digest struct {
	sum        hash.Hash
	buf        []byte      // not in sum yet
	full, free chan []byte // to the other goroutine and back; nil: it is not needed yet
}

const (
	size    = 1 << 16 // of a buffer, in bytes
	buffers = 2       // that the other goroutine has, besides Digest.buf
)

// New returns the digest of nothing.
func New() *Digest { return &Digest{sum: sha256.New()} }

// Write adds bytes. It keeps no reference to them.
func (d *Digest) Write(b []byte) {
	for len(d.buf)+len(b) > size {
		n := size - len(d.buf)
		d.buf, b = append(d.buf, b[:n]...), b[n:]
		d.handOver()
	}
	d.buf = append(d.buf, b...)
}

// handOver exchanges buf for an empty one.
func (d *Digest) handOver() {
	if d.full == nil {
		d.start()
	}
	d.full <- d.buf
	d.buf = <-d.free
}

func (d *Digest) start() {
	d.full, d.free = make(chan []byte), make(chan []byte, buffers)
	for range buffers {
		d.free <- make([]byte, 0, size)
	}
	go func() {
		for b := range d.full {
			d.sum.Write(b)
			d.free <- b[:0]
		}
	}()
}

// Text returns the digest of all bytes so far, in hexadecimal. More can be written after it.
func (d *Digest) Text() string {
	if d.full != nil {
		var free [buffers][]byte
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

// Close ends the other goroutine.
func (d *Digest) Close() {
	if d.full != nil {
		close(d.full)
	}
}
