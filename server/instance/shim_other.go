//go:build !linux

package instance

import (
	"context"
	"time"

	"oversell/internal/errclass"
)

// offsetFileVar is the environment variable that tells the shim its file.
const offsetFileVar = "OVERSELL_CLOCK_OFFSET_FILE"

// Shim returns the library that moves a server's clock; it exists for Linux only.
func Shim(context.Context) (string, error) {
	return "", errclass.Environmentf("moving a server's clock works on Linux only")
}

// writeOffset is for servers with the shim; here none has it.
func writeOffset(string, time.Duration) error {
	return errclass.Environmentf("moving a server's clock works on Linux only")
}
