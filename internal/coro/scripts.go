package coro

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"oversell/internal/rediscmd"
)

// Scripts are the texts of scripts that clients sent, by their SHA. The zero value
// is empty. It is safe for concurrent use.
//
// It also keeps the Redis clients of executions that have ended, to use them again.
type Scripts struct {
	mu    sync.RWMutex
	texts map[string]string
	shas  map[string]string
	asked map[string]bool // those that a client was told are missing
	late  bool            // one of those was sent afterwards
	spare sync.Pool       // of *port
}

// Late reports whether, since the last call of Late, a script was seen that a client had been told is missing. A client
// that asks for this script now gets another answer.
func (s *Scripts) Late() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = false
	return late
}

// Text returns the script with this SHA, if it was seen. The SHA is in hexadecimal, in
// either case.
func (s *Scripts) Text(sha string) (text string, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if text, known = s.texts[sha]; !known {
		text, known = s.texts[strings.ToLower(sha)]
	}
	return text, known
}

// Texts returns all that were seen, in no order.
func (s *Scripts) Texts() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.texts))
}

// learn keeps a text and returns its SHA.
func (s *Scripts) learn(text string) string {
	s.mu.RLock()
	sha, known := s.shas[text]
	s.mu.RUnlock()
	if known {
		return sha
	}
	sha = rediscmd.SHA1(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts, s.shas = map[string]string{}, map[string]string{}
	}
	s.texts[sha], s.shas[text] = text, sha
	s.late = s.late || s.asked[sha]
	return sha
}

// loads returns the reply to SCRIPT LOAD, or "" for another command. The command needs no step of
// its own: all servers know a script once a client has sent it, and a client that loads a script
// was told that it is missing before that.
func (s *Scripts) loads(command []string) (reply string) { return LoadedReply(command, s.learn) }

// LoadedReply returns the reply to SCRIPT LOAD, or "" for another command. learn returns the SHA-1
// of a script.
func LoadedReply(command []string, learn func(text string) (sha string)) string {
	if len(command) != 3 || !strings.EqualFold(command[0], "SCRIPT") || !strings.EqualFold(command[1], "load") {
		return ""
	}
	sha := learn(command[2])
	return fmt.Sprintf("$%d\r\n%s\r\n", len(sha), sha)
}

// normalize turns an EVAL into an EVALSHA, and learns the scripts that it sees.
func (s *Scripts) normalize(command []string) {
	if len(command) < 2 {
		return
	}
	switch c, _ := rediscmd.Find(command[0]); {
	case c.Does(rediscmd.RunsText):
		command[0], command[1] = c.OtherScript.Lower, s.learn(command[1])
	case c.Does(rediscmd.RunsHash):
		command[0], command[1] = c.Lower, strings.ToLower(command[1])
	case c.Name == "SCRIPT" && len(command) == 3 && strings.EqualFold(command[1], "load"):
		s.learn(command[2])
	}
}

// missing reports whether a command calls a script that was not seen.
func (s *Scripts) missing(command []string) bool {
	return len(command) >= 2 && rediscmd.Is(command[0], rediscmd.RunsHash) && !s.there(command[1])
}

// exist returns the reply to SCRIPT EXISTS: a server has every script that a client has sent so far. It is empty for other commands.
func (s *Scripts) exist(command []string) string {
	if len(command) < 3 || !strings.EqualFold(command[0], "SCRIPT") || !strings.EqualFold(command[1], "exists") {
		return ""
	}
	reply := fmt.Sprintf("*%d\r\n", len(command)-2)
	for _, sha := range command[2:] {
		if s.there(sha) {
			reply += ":1\r\n"
		} else {
			reply += ":0\r\n"
		}
	}
	return reply
}

// there reports whether a script was seen. If not, it notes that a client asked for it; see Late.
func (s *Scripts) there(sha string) bool {
	if _, known := s.Text(sha); known {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[string]bool{}
	}
	s.asked[strings.ToLower(sha)] = true
	return false
}
