package locktest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"oversell/variant"
)

// Rules about the answers to calls, and about the options of an acquire.
const (
	answerLost = "the answer to a client that has lost its lock"
	answerHeld = "the answer to a client that is refused"
	inTime     = "the answer to a holder late in its lease"
	lostConn   = "calls whose connection is lost"
	stops      = "a client that is told to stop waiting as the lock is released"
	waitLength = "the length of a wait"
	waitHours  = "a client that waits for hours"
	mostTries  = "a limit on the attempts"
	lostExtend = "a release after an extend without an answer"
	ownerHeld  = "a client held up between two commands of a release or an extend"
	toldLost   = "a holder is told when its lock is lost"
)

// TestAnswers checks that each of these rules finds what is wrong with a lock that gives a wrong answer, or does not keep to the options of
// an acquire.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, 8) // they mostly wait
	for _, tt := range []struct {
		row
		says string
	}{
		{row{answerLost, "late-release-refused", variant.OwnerOnlyRelease}, `was answered with "release`},
		{row{answerLost, "late-release-own-error", variant.OwnerOnlyRelease}, "the caller does not own the lock"},
		{row{answerLost, "late-extend-refused", variant.OwnerOnlyRelease}, "a client's extend of the lock whose lease was over"},
		{row{ownerHeld, "release-count-ignored", variant.OwnerOnlyRelease}, "a holder's release that was held up before command 2"},
		{row{lostConn, "closed-connection-is-refusal", variant.Progress}, "since the server closed the connection"},
		{row{lostConn, "closed-connection-is-release", variant.Progress}, "not executed, and not answered"},
		{row{stops, "last-attempt-unheard", variant.Progress}, "a client stopped waiting in a pause"},
		{row{answerHeld, "stop-is-own-error", variant.Progress}, "Env.Wait returned variant.ErrStopped"},
		{row{lostExtend, "extend-changes-token", variant.Progress}, "the holder's release inside the first lease"},
		{row{inTime, "extend-not-in-last-moment", variant.OwnerOnlyRelease}, "before its end, was answered with"},
		{row{toldLost, "loss-told-by-name", variant.Progress}, "the channel that Lost returns for the first grant was open"},
		{row{toldLost, "renewal-told-by-name", variant.Progress}, "Renewed said of the first grant"},
		{row{mostTries, "one-attempt-too-many", variant.Progress}, "made 2 attempts"},
		{row{waitLength, "pause-longer-than-wait", variant.Progress}, "want a last pause that ends with the wait"},
		{row{waitLength, "single-attempt-waits", variant.Progress}, "Options.Wait = 0 called Env.Wait"},
		{row{waitHours, "wait-of-a-minute", variant.Progress}, "was refused after 1m0s"},
		{row{"names are independent", "names-fold-case", variant.Progress}, "is the one that keeps it from being granted"},
	} {
		v := entry(t, tt.lock)
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r, end, err := trial(t, v)
			if err != nil {
				t.Errorf("%s: %v", tt.lock, err)
				return
			}
			defer end()
			if err := tt.try(t, r); err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, %s: the rule says %q; want %q", tt.rule, tt.lock, err, tt.says)
			}
		})
	}
}

// TestSoundAnswers checks that these rules find nothing in sound locks.
func TestSoundAnswers(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range []string{"sound-connection-repaired", "sound-last-attempt", "sound-token-changes", "sound-line"} {
		r, end, err := trial(t, entry(t, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer end()
			for _, rule := range []string{answerLost, answerHeld, inTime, lostConn, stops, waitLength, waitHours, mostTries, lostExtend, ownerHeld} {
				_ = row{rule, name, ""}.try(t, r)
			}
		})
	}
}

// TestForgottenToken checks that a lock whose Extend returns no token is found before any rule is tried.
func TestForgottenToken(t *testing.T) {
	t.Parallel()
	_, _, err := trial(t, entry(t, "extend-forgets-token"))
	var b *breach
	if !errors.As(err, &b) || b.Interface != "lockimpl.Locker" || !strings.Contains(err.Error(), "Extend returned it without") {
		t.Errorf("the lock was tried, and the suite says %v; want that its extend forgets the token", err)
	}
}
