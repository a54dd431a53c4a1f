//go:build !linux

// Package preload compiles small C libraries that are preloaded into programs (LD_PRELOAD).
package preload

import (
	"context"

	"oversell/internal/errclass"
)

// Library is for Linux; elsewhere it returns an error of class errclass.ErrEnvironment.
func Library(_ context.Context, _, what string, _ []byte) (string, error) {
	return "", errclass.Environmentf("%s exists for Linux only", what)
}
