package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

// TestDigest writes pieces of any length, overwrites them at once, and compares the digest with that of all bytes, also in
// between.
func TestDigest(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	r := rand.New(random)
	for range 200 {
		d, want := New(), sha256.New()
		for range r.IntN(20) {
			b := make([]byte, r.IntN([]int{10, size, size + 2, 5 * size}[r.IntN(4)]))
			_, _ = random.Read(b)
			want.Write(b)
			d.Write(b)
			clear(b)
			if r.IntN(4) == 0 && d.Text() != hex.EncodeToString(want.Sum(nil)) {
				t.Fatal("the digest in between is wrong")
			}
		}
		if got := d.Text(); got != hex.EncodeToString(want.Sum(nil)) || got != d.Text() {
			t.Fatal("the digest is wrong")
		}
		d.Close()
	}
}
