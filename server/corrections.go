package server

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"

	miniserver "github.com/alicebob/miniredis/v2/server"
)

// corrections makes commands of miniredis do what they do in Redis 7. miniredis ignores the smallest idle time of XCLAIM,
// counts a claim with JUSTID as a delivery, and has XCLAIM keep or make pending entries of messages that were deleted; its
// TTL rounds down. What remains: XAUTOCLAIM and XPENDING know nothing of messages that were deleted while they were pending,
// and XCLAIM knows no LASTID.
type corrections struct {
	srv *miniserver.Server
	own bool // corrections itself executes the command; read only in scripts, which run one at a time
}

// asScript executes a command that a client sent as a script, so that its parts are one step. It returns false if
// miniredis needs no correction.
func (s *corrections) asScript(p *miniserver.Peer, cmd string, args []string) bool {
	switch cmd {
	case "XCLAIM", "XAUTOCLAIM", "TTL":
		s.srv.Dispatch(p, append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0", cmd}, args...))
		return true
	}
	return false
}

// inScript executes a command that a script called. It returns false if miniredis needs no correction, and for calls with
// bad arguments, which miniredis answers.
func (s *corrections) inScript(p *miniserver.Peer, cmd string, args []string) bool {
	switch {
	case s.own:
		return false
	case cmd == "XCLAIM" && len(args) >= 5:
		return s.claim(p, args)
	case cmd == "XAUTOCLAIM" && len(args) >= 5:
		return s.autoclaim(p, args)
	case cmd == "TTL" && len(args) == 1:
		return s.ttl(p, args[0])
	}
	return false
}

// ttl executes TTL, which rounds to the nearest second.
func (s *corrections) ttl(p *miniserver.Peer, key string) bool {
	got, err := s.ask(p, "PTTL", key)
	left, ok := got.(int)
	if err != nil || !ok {
		return false
	}
	if left >= 0 {
		left = (left + 500) / 1000
	}
	p.WriteInt(left)
	return true
}

// claim executes XCLAIM, one message after the other.
func (s *corrections) claim(p *miniserver.Peer, args []string) bool {
	minIdle, err := strconv.Atoi(args[3])
	if err != nil {
		return false
	}
	n := 4
	for n < len(args) && !isClaimOption(args[n]) {
		n++
	}
	ids, options := args[4:n], args[n:]
	none := slices.DeleteFunc(slices.Clone(options), func(o string) bool { return strings.EqualFold(o, "FORCE") })
	if _, err := s.ask(p, append([]string{"XCLAIM", args[0], args[1], args[2], args[3], "0-0"}, none...)...); err != nil {
		return false // no such group, or bad options
	}
	var claimed []any
	for _, id := range ids {
		if got, ok := s.claimOne(p, args[:3], minIdle, id, options); ok {
			claimed = append(claimed, got)
		}
	}
	write(p, claimed)
	return true
}

func isClaimOption(arg string) bool {
	switch strings.ToUpper(arg) {
	case "IDLE", "TIME", "RETRYCOUNT", "FORCE", "JUSTID", "LASTID":
		return true
	}
	return false
}

// claimOne claims a message, unless it is not pending, or was delivered a short time ago. who is the stream, the group and
// the consumer.
func (s *corrections) claimOne(p *miniserver.Peer, who []string, minIdle int, id string, options []string) (any, bool) {
	count, idle, pending := s.pending(p, who, id)
	if !s.exists(p, who, id) {
		if pending {
			_, _ = s.ask(p, "XACK", who[0], who[1], id)
		}
		return nil, false
	}
	switch {
	case pending && idle < minIdle, !pending && !has(options, "FORCE"):
		return nil, false
	case !pending:
		count = 1
	}
	call := append([]string{"XCLAIM", who[0], who[1], who[2], "0", id}, options...)
	if has(options, "JUSTID") && !has(options, "RETRYCOUNT") {
		call = append(call, "RETRYCOUNT", strconv.Itoa(count))
	}
	got, err := s.ask(p, call...)
	if list, ok := got.([]any); ok && err == nil && len(list) == 1 {
		return list[0], true
	}
	return nil, false
}

// autoclaim executes XAUTOCLAIM with JUSTID, which does not count as a delivery.
func (s *corrections) autoclaim(p *miniserver.Peer, args []string) bool {
	if !has(args[5:], "JUSTID") {
		return false
	}
	who := args[:3]
	got, err := s.ask(p, append([]string{"XAUTOCLAIM"}, args...)...)
	reply, ok := got.([]any)
	if err != nil || !ok || len(reply) != 3 {
		return false
	}
	ids, _ := reply[1].([]any)
	for _, id := range ids {
		count, _, _ := s.pending(p, who, text(id))
		_, _ = s.ask(p, "XCLAIM", who[0], who[1], who[2], "0", text(id), "JUSTID", "RETRYCOUNT", strconv.Itoa(count-1))
	}
	write(p, reply)
	return true
}

// pending returns how often a message was delivered, and how many milliseconds ago.
func (s *corrections) pending(p *miniserver.Peer, who []string, id string) (count, idle int, is bool) {
	got, err := s.ask(p, "XPENDING", who[0], who[1], id, id, "1")
	list, ok := got.([]any)
	if err != nil || !ok || len(list) != 1 {
		return 0, 0, false
	}
	entry, ok := list[0].([]any)
	if !ok || len(entry) != 4 {
		return 0, 0, false
	}
	idle, _ = entry[2].(int)
	count, _ = entry[3].(int)
	return count, idle, true
}

func (s *corrections) exists(p *miniserver.Peer, who []string, id string) bool {
	got, err := s.ask(p, "XRANGE", who[0], id, id)
	list, ok := got.([]any)
	return err == nil && ok && len(list) == 1
}

// ask executes a command of miniredis within the script of p.
func (s *corrections) ask(p *miniserver.Peer, args ...string) (any, error) {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	inner := miniserver.NewPeer(w)
	inner.Ctx = p.Ctx
	s.own = true
	s.srv.Dispatch(inner, args)
	s.own = false
	w.Flush()
	return miniserver.ParseReply(bufio.NewReader(&buf))
}

func has(options []string, name string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(o, name) })
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// write answers what ParseReply has read.
func write(p *miniserver.Peer, v any) {
	switch v := v.(type) {
	case []any:
		p.WriteLen(len(v))
		for _, e := range v {
			write(p, e)
		}
	case int:
		p.WriteInt(v)
	case nil:
		p.WriteNull()
	default:
		p.WriteBulk(text(v))
	}
}
