package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
)

// TestAChildDiesWithItsParent checks that a program ends when its parent is killed, which only Linux can do.
func TestAChildDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"=1")
	parent, says := piped(t, cmd)
	if line, err := says.ReadString('\n'); line != "started\n" {
		t.Fatalf("the parent says %q (%v)", line, err)
	}
	parent.Kill()
	if _, err := says.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the child outlives its parent: %v", err)
	}
}
