// Package rediscmd is the table of Redis commands: their names, their number of arguments, which
// arguments are keys, and their effects on the data and on the connection.
//
// The proxy uses it to follow the state of connections, faults to find the commands to which they apply, and the model
// of Redis to refuse wrong calls. The results of commands are in the model (package redismodel), not in this table. A
// test compares the table with COMMAND INFO and COMMAND GETKEYS of a real server.
package rediscmd

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
)

// Command is the entry of a command.
type Command struct {
	// Name is in capitals. A command within a container is named by both its words, like SCRIPT|LOAD. Only those in use
	// are in the table.
	Name string
	// Lower is the name in small letters, as drivers send it.
	Lower string
	// OtherScript is the command that runs a script by text if this one runs it by SHA, or the other way round; nil if
	// this one runs none.
	OtherScript *Command
	// Arity is how many words it takes, including its name; if negative, the least number. 0: unknown.
	Arity  int
	effect Effect
	keys   keys
}

// Effect is a set of effects of commands.
type Effect uint32

// The effects.
const (
	Reads     Effect = 1 << iota // and never writes
	Writes                       // or may
	Expires                      // it may set a time to live, of a key or a part of it
	Blocks                       // it may wait for others
	NoScript                     // scripts may not call it
	Container                    // the next word says which command it is: CLIENT KILL
	RunsText                     // it runs a script that it contains
	RunsHash                     // it runs a script that it names by its SHA

	Opens // drivers send it when they open a connection, or see whether it works

	Greets     // HELLO: it may change the protocol
	Begins     // it begins a transaction
	Ends       // it ends a transaction
	Watches    // until an Unwatches, changes of keys make the next transaction fail
	Unwatches  // it forgets what was watched
	Subscribes // or ends subscriptions; it has a confirmation for each channel, not a reply
	Mutes      // CLIENT, whose REPLY says which commands are answered
	Debugs     // SCRIPT, whose DEBUG takes the connection over
	Resets     // RESET: the connection is like a new one
	Leaves     // from here on the connection does not carry commands and replies
)

// Connection is the set of effects that change how the connection goes on, except for watched keys.
const Connection = Greets | Begins | Ends | Subscribes | Mutes | Debugs | Resets | Leaves

// Does reports whether the command has one of these effects.
func (c *Command) Does(e Effect) bool { return c.effect&e != 0 }

// Fits reports whether the command takes so many words, including its name.
func (c *Command) Fits(words int) bool { return words == c.Arity || c.Arity <= 0 && words >= -c.Arity }

// Is reports whether a command is known by this name and has one of these effects.
func Is[T string | []byte](name T, e Effect) bool {
	c, known := Find(name)
	return known && c.Does(e)
}

// longest is greater than the length of every name in the table.
const longest = 32

var commands, byName = build()

func build() (all []Command, byName map[string]*Command) {
	all, byName = make([]Command, len(table)), make(map[string]*Command, len(table))
	for i, r := range table {
		all[i] = Command{Name: r.name, Lower: strings.ToLower(r.name), Arity: r.arity, effect: r.effect, keys: r.keys}
		byName[all[i].Name], byName[all[i].Lower] = &all[i], &all[i]
	}
	for i := range all {
		if c := &all[i]; c.Does(RunsText) {
			other := byName[strings.Replace(c.Name, "EVAL", "EVALSHA", 1)]
			c.OtherScript, other.OtherScript = other, c
		}
	}
	return all, byName
}

// All returns the commands in the table.
func All() []Command { return commands }

// Find finds a command by its name, ignoring case. An unknown one, of a module or a future server, is assumed to have
// its key first, as nearly all do. Known commands cause no allocation.
func Find[T string | []byte](name T) (c *Command, known bool) {
	if c = byName[string(name)]; c != nil { // as nearly all are sent
		return c, true
	}
	if len(name) > longest {
		return guess(strings.ToUpper(string(name))), false
	}
	var short [longest]byte
	capitals := short[:0]
	for i := range len(name) {
		letter := name[i]
		if letter >= 'a' && letter <= 'z' {
			letter -= 'a' - 'A'
		}
		capitals = append(capitals, letter)
	}
	if c = byName[string(capitals)]; c != nil {
		return c, true
	}
	return guess(string(capitals)), false
}

// guess returns a command that is not in the table.
func guess(name string) *Command {
	if strings.HasPrefix(name, "FT.") { // its first argument is an index, or nothing
		return &Command{Name: name, Lower: strings.ToLower(name)}
	}
	return &Command{Name: name, Lower: strings.ToLower(name), keys: first}
}

// rule says how to find a command's keys.
type rule uint8

const (
	ranges            rule = iota // they stand at from, from+step … to; below zero, to counts from the end
	counts                        // their number stands at from, and they behind it, one every step
	countsBehindFirst             // the first argument, and those that counts finds
	readsStreams                  // behind STREAMS, which stands at from or later; as many ids come behind them
	stores                        // the first argument, and the one behind STORE or STOREDIST, which stands at from or later
	migrates                      // at from, or, if that is empty, all behind KEYS
)

type keys struct {
	rule           rule
	from, to, step int8
}

// Key returns the index of the first key among the words of a command, with the name at 0; 0 if it has none. n is the
// number of words, and word(i) is one of them. The result is valid even if words are missing after the key.
func (c *Command) Key(n int, word func(i int) string) int {
	place := int(c.keys.from)
	switch c.keys.rule {
	case counts:
		if place >= n || number(word(place)) < 1 {
			return 0
		}
		place++
	case countsBehindFirst, stores:
		place = 1
	case readsStreams:
		place = behind(n, word, place, "STREAMS")
	case migrates:
		if place < n && word(place) == "" {
			place = behind(n, word, place+1, "KEYS")
		}
	}
	if place >= n {
		return 0
	}
	return place
}

// Keys returns the indexes of all keys of a complete command, in the order of sending.
func (c *Command) Keys(n int, word func(i int) string) []int {
	key := c.Key(n, word)
	if key == 0 {
		return nil
	}
	k := c.keys
	switch k.rule {
	case counts:
		return span(key, key+(number(word(int(k.from)))-1)*int(k.step), int(k.step), n)
	case countsBehindFirst:
		from := int(k.from)
		if from >= n {
			return []int{key}
		}
		return append([]int{key}, span(from+1, from+number(word(from)), 1, n)...)
	case readsStreams:
		return span(key, key+(n-key)/2-1, 1, n)
	case stores:
		return append([]int{key}, lastBehind(n, word, int(k.from), "STORE", "STOREDIST")...)
	case migrates:
		if key == int(k.from) {
			return []int{key}
		}
		return span(key, n-1, 1, n)
	}
	to := int(k.to)
	if to < 0 {
		to += n
	}
	return span(key, to, int(k.step), n)
}

// span is from, from+step … to, below n.
func span(from, to, step, n int) (places []int) {
	for at := from; at <= to && at < n; at += step {
		places = append(places, at)
	}
	return places
}

// number returns a number of keys; 0 if it is none.
func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// behind returns the index after the first occurrence of a word from an index on; 0 if there is none.
func behind(n int, word func(i int) string, from int, this string) int {
	for i := from; i < n; i++ {
		if isWord(word(i), this) {
			return i + 1
		}
	}
	return 0
}

// lastBehind returns the index after the last occurrence of one of these words.
func lastBehind(n int, word func(i int) string, from int, these ...string) []int {
	for i := n - 2; i >= from; i-- {
		for _, this := range these {
			if isWord(word(i), this) {
				return []int{i + 1}
			}
		}
	}
	return nil
}

// isWord compares as servers do: only ASCII letters have two cases.
func isWord(word, this string) bool { return len(word) == len(this) && strings.EqualFold(word, this) }

// SHA1 returns the SHA-1 digest of a script in lower-case hexadecimal digits, by which a server names it.
func SHA1(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// ScriptMissing is the error that a server returns if it does not know the script that a command names by its SHA.
const ScriptMissing = "NOSCRIPT No matching script. Please use EVAL."
