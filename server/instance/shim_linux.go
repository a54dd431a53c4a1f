package instance

import (
	"context"
	_ "embed"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"oversell/internal/errclass"
	"oversell/internal/preload"
)

// A server's clock is moved by a small library that is preloaded into it. (The
// well-known libfaketime makes redis-server 7.0 crash.) It is C, in a directory of its own, so that go build needs no C
// compiler; only moving clocks needs one.
//
//go:embed shim/clock.c
var shimSource []byte

// offsetFileVar is the environment variable that tells the shim its file.
const offsetFileVar = "OVERSELL_CLOCK_OFFSET_FILE"

// Shim returns the path of the compiled library, for LD_PRELOAD: see [preload.Library].
func Shim(ctx context.Context) (string, error) {
	return preload.Library(ctx, "clock", "the library that moves a server's clock", shimSource)
}

// offsetSize is the size of one integer.
const offsetSize = 8

// writeOffset sets by how much the clocks of the programs with the shim and this file are ahead, and makes the file if
// there is none. It writes through memory, as the shim reads, so no reader sees half of an offset.
func writeOffset(file string, ahead time.Duration) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return errclass.Environmentf("set a server's clock: %w", err)
	}
	defer f.Close()
	if err := reserve(f); err != nil {
		return errclass.Environmentf("set a server's clock: %w", err)
	}
	shared, err := syscall.Mmap(int(f.Fd()), 0, offsetSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return errclass.Environmentf("set a server's clock: map %s: %w", file, err)
	}
	atomic.StoreInt64((*int64)(unsafe.Pointer(&shared[0])), int64(ahead))
	if err := syscall.Munmap(shared); err != nil {
		return errclass.Environmentf("set a server's clock: unmap %s: %w", file, err)
	}
	return nil
}

// reserve makes a new file long enough, with real bytes: a hole on a full disk would kill the process that writes to it
// through memory.
func reserve(f *os.File) error {
	state, err := f.Stat()
	if err != nil || state.Size() >= offsetSize {
		return err
	}
	_, err = f.Write(make([]byte, offsetSize))
	return err
}
