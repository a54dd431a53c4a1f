package wire

// turn is what a command does to its connection beyond having one reply.
type turn uint8

const (
	noTurn      turn = iota
	subscribes       // one confirmation for each channel
	turnsReply       // CLIENT REPLY, if it is that
	turnsScript      // SCRIPT DEBUG, if it is that
	saysHello        // may change the protocol
	resets           // RESET
	begins           // MULTI
	ends             // EXEC, DISCARD
	leaves           // no more commands and replies from here on
)

var turns = map[string]turn{
	"SUBSCRIBE": subscribes, "PSUBSCRIBE": subscribes, "SSUBSCRIBE": subscribes,
	"UNSUBSCRIBE": subscribes, "PUNSUBSCRIBE": subscribes, "SUNSUBSCRIBE": subscribes,
	"CLIENT": turnsReply, "SCRIPT": turnsScript, "HELLO": saysHello, "RESET": resets,
	"MULTI": begins, "EXEC": ends, "DISCARD": ends,
	"MONITOR": leaves, "SYNC": leaves, "PSYNC": leaves,
}

// session is what the commands of a connection so far mean for the replies to
// the next ones.
type session struct {
	multi      bool // commands are queued until EXEC
	silent     bool // CLIENT REPLY OFF
	skip       bool // CLIENT REPLY SKIP came last
	subscribed bool // there was a subscription
}

// expect is what the server will answer to a command. owed is false if nothing;
// the kind is opaque if the proxy does not follow the connection from here on.
// argc is the number of its arguments, of which args may be only the first ones.
func (s *session) expect(k *knownCommand, args [][]byte, argc int64) (e expectation, owed bool) {
	skipped := s.skip
	s.skip = false
	mute := s.silent || skipped
	switch k.turn {
	case begins, ends:
		s.multi = k.turn == begins
	case leaves:
		return unfollowed, true
	case turnsScript:
		if argc == 3 && isWord(args[1], "DEBUG") && !isWord(args[2], "NO") {
			return unfollowed, true
		}
	case turnsReply:
		if argc == 3 && isWord(args[1], "REPLY") {
			return s.turnReply(args[2], mute)
		}
	case resets:
		return s.reset(skipped)
	case saysHello:
		return s.unlessHidden(expectation{kind: aHello, n: 1}, mute)
	case subscribes:
		s.subscribed = true
		return s.unlessHidden(confirmationsOf(k.name, argc-1), mute)
	}
	return expectation{kind: aReply, n: 1}, !mute
}

// empty is a request without arguments, which the server ignores.
func (s *session) empty() { s.skip = false }

// unlessHidden is for a command whose reply must be seen, because it tells what
// became of the connection.
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
