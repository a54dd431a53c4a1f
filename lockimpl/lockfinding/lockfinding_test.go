package lockfinding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/variant"
)

// TestTold checks that Told words each kind of finding as what it is: broken, untrue, inconclusive, or impossible to try.
func TestTold(t *testing.T) {
	refused := Broken(variant.Progress, "nobody could take the lock: %w", lockimpl.ErrHeld)
	for _, tt := range []struct {
		err   error
		busy  bool
		begin string
	}{
		{refused, false, "lock mine promises progress, but today: "},
		{fmt.Errorf("a case: %w", refused), false, "lock mine promises progress, but today: a case: "},
		{BrokenInterface("lockimpl.LossNotifier", variant.Progress, "it was told"), false, "lock mine implements lockimpl.LossNotifier, but "},
		{Unjudged("it is a test", nil), true, "inconclusive: "},
		{Unjudged("it is a test", refused), false, "inconclusive: "},
		{Unjudged("it is a test", Broken(variant.MutualExclusion, "two hold it")), false, "inconclusive: "},
		{fmt.Errorf("no server"), false, "lock mine could not be tried today: "},
		{Slow("it is a test", nil), true, "inconclusive: a rule about lock mine was not judged, since it is a test; no promise was found broken in several attempts. The machine and the servers answered in time"},
	} {
		if told := Told("mine", tt.err, " today"); !strings.HasPrefix(told, tt.begin) {
			t.Errorf("%v was told as %q; want %q", tt.err, told, tt.begin)
		}
		if OnlyBusy(tt.err) != tt.busy {
			t.Errorf("%v: taken for a busy machine: %v, want %v", tt.err, !tt.busy, tt.busy)
		}
	}
}

// TestWaited checks that a client whose last call had no answer in time has waited, whichever time limit ended the call, and
// that one that got another error has not.
func TestWaited(t *testing.T) {
	for last, want := range map[error]bool{
		context.DeadlineExceeded:                          true,
		fmt.Errorf("node #0: %w", os.ErrDeadlineExceeded): true,
		errors.New("WRONGTYPE"):                           false,
	} {
		err := Broken(variant.Progress, "others are refused: %v", &lockclient.Ungranted{Limit: time.Second, Last: last})
		var b *Breach
		if !errors.As(err, &b) || b.Waited != want {
			t.Errorf("%v: %+v; want that it waited: %t", last, b, want)
		}
	}
}
