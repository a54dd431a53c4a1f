package wire

import (
	"bytes"

	"oversell/internal/rediscmd"
)

// session is the state of a connection that determines its next replies.
type session struct {
	multi      bool // commands are queued until EXEC
	silent     bool // CLIENT REPLY OFF
	skip       bool // CLIENT REPLY SKIP came last
	subscribed bool // there was a subscription
}

// expect returns what the server will answer to a command. owed is false if the
// server does not answer it. The kind is opaque if the proxy does not follow the
// connection from here on. argc is the number of the command's arguments; args
// may hold only the first of them.
func (s *session) expect(c *rediscmd.Command, args [][]byte, argc int64) (e expectation, owed bool) {
	skipped := s.skip
	s.skip = false
	mute := s.silent || skipped
	switch {
	case !c.Does(rediscmd.Connection):
	case c.Does(rediscmd.Begins | rediscmd.Ends):
		s.multi = c.Does(rediscmd.Begins)
	case c.Does(rediscmd.Leaves):
		return unfollowed, true
	case c.Does(rediscmd.Debugs):
		if argc == 3 && isWord(args[1], "DEBUG") && !isWord(args[2], "NO") {
			return unfollowed, true
		}
	case c.Does(rediscmd.Mutes):
		if argc == 3 && isWord(args[1], "REPLY") {
			return s.turnReply(args[2], mute)
		}
	case c.Does(rediscmd.Resets):
		return s.reset(skipped)
	case c.Does(rediscmd.Greets):
		return s.unlessHidden(expectation{kind: aHello, n: 1}, mute)
	case c.Does(rediscmd.Subscribes):
		s.subscribed = true
		return s.unlessHidden(confirmationsOf(c.Name, argc-1), mute)
	}
	return expectation{kind: aReply, n: 1}, !mute
}

// empty is a request without arguments, which the server ignores.
func (s *session) empty() { s.skip = false }

// unlessHidden returns e, or unfollowed if the reply will not be seen: only the reply tells
// what became of the connection.
func (s *session) unlessHidden(e expectation, mute bool) (expectation, bool) {
	if mute || s.multi {
		return unfollowed, true
	}
	return e, true
}

// reset is RESET, which is answered even under CLIENT REPLY OFF.
func (s *session) reset(skipped bool) (expectation, bool) {
	if skipped {
		return unfollowed, true
	}
	*s = session{}
	return expectation{kind: aReset, n: 1}, true
}

// turnReply is CLIENT REPLY, of which only ON is answered. In a transaction it
// takes effect at some later time, and a subscriber of RESP2 may not give it.
func (s *session) turnReply(to []byte, mute bool) (expectation, bool) {
	if s.multi || s.subscribed {
		return unfollowed, true
	}
	switch {
	case isWord(to, "ON"):
		s.silent = false
		return expectation{kind: aReply, n: 1}, true
	case isWord(to, "OFF"):
		s.silent = true
		mute = true
	case isWord(to, "SKIP"):
		s.skip = !s.silent
		mute = true
	}
	return expectation{kind: aReply, n: 1}, !mute
}

// isWord compares an argument with a word in capitals.
func isWord(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}
