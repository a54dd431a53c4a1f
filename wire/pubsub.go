package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// subscriptions are the channels, the patterns and the channels of shards that a
// connection has subscribed to, as the server has confirmed.
type subscriptions [3]map[string]struct{}

// of returns the subscriptions to which a confirmation refers: channels, patterns, or channels of shards.
func (s *subscriptions) of(word string) *map[string]struct{} {
	switch word {
	case "psubscribe", "punsubscribe":
		return &s[1]
	case "ssubscribe", "sunsubscribe":
		return &s[2]
	}
	return &s[0]
}

// any reports whether there are any subscriptions.
func (s *subscriptions) any() bool { return len(s[0])+len(s[1])+len(s[2]) > 0 }

// confirm takes a confirmation into account.
func (s *subscriptions) confirm(word string, channel []byte) {
	set := s.of(word)
	if strings.Contains(word, "unsub") {
		delete(*set, string(channel))
		return
	}
	if *set == nil {
		*set = map[string]struct{}{}
	}
	(*set)[string(channel)] = struct{}{}
}

// announced reads the first two parts of an array or a push: what a subscriber
// hears begins with a word and a channel. whole is false if the channel is not
// all there.
func announced(b []byte) (word string, channel []byte, whole bool) {
	_, b, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return "", nil, false
	}
	first, b, ok := bulk(b)
	if !ok {
		return "", nil, false
	}
	channel, _, whole = bulk(b)
	return string(first), channel, whole
}

// bulk reads a string with a length; a null reads as nothing.
func bulk(b []byte) (text, rest []byte, ok bool) {
	head, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(head) < 2 || head[0] != '$' {
		return nil, nil, false
	}
	n, err := strconv.Atoi(string(head[1:]))
	if n == -1 {
		return nil, rest, true
	}
	if err != nil || n < 0 || n > len(rest)-2 {
		return nil, nil, false
	}
	return rest[:n], rest[n+2:], true
}

// isMessage says that a word begins a message to a subscriber.
func isMessage(word string) bool {
	return word == "message" || word == "pmessage" || word == "smessage"
}
