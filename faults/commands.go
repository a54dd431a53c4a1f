package faults

import (
	"fmt"
	"strings"

	"oversell/internal/rediscmd"
	"oversell/wire"
)

// Commands answer to more than one name, so that a sentence need not know which of several equivalent commands a driver
// or a script library sends. SET answers to names by its options:
//
//	SET key value NX         SET and SETNX
//	SET key value EX 10      SET and SETEX
//	SET key value PX 10000   SET, PSETEX and SETEX
//
// and these to equivalent or more general names:
var alsoAnswersTo = map[string][]string{
	"EVALSHA":    {"EVAL"}, // which is what a driver sends when the server does not know the script
	"EVAL_RO":    {"EVAL"},
	"EVALSHA_RO": {"EVALSHA", "EVAL_RO", "EVAL"},
	"FCALL_RO":   {"FCALL"},
	"DECR":       {"DECRBY"},
	"DECRBY":     {"DECR"},
	"INCR":       {"INCRBY"},
	"INCRBY":     {"INCR"},
	"HMSET":      {"HSET"},
	"PSETEX":     {"SETEX"},
	"PEXPIRE":    {"EXPIRE"},
	"EXPIREAT":   {"EXPIRE"},
	"PEXPIREAT":  {"PEXPIRE", "EXPIRE"},
	"PTTL":       {"TTL"},
	"UNLINK":     {"DEL"},
}

// The options of SET that make it answer to further names.
const (
	withNX = 1 << iota
	withEX
	withPX
)

// setAnswersTo lists the names of a SET with some of these options.
var setAnswersTo = [...][]string{
	0:                        {"SET"},
	withNX:                   {"SET", "SETNX"},
	withEX:                   {"SET", "SETEX"},
	withPX:                   {"SET", "PSETEX", "SETEX"},
	withNX | withEX:          {"SET", "SETNX", "SETEX"},
	withNX | withPX:          {"SET", "SETNX", "PSETEX", "SETEX"},
	withEX | withPX:          {"SET", "SETEX", "PSETEX"}, // a combination that the server refuses
	withNX | withEX | withPX: {"SET", "SETNX", "SETEX", "PSETEX"},
}

// answersTo lists the names to which the commands of the table answer, their own first.
var answersTo = func() map[*rediscmd.Command][]string {
	all := map[*rediscmd.Command][]string{}
	for _, c := range rediscmd.All() {
		known, _ := rediscmd.Find(c.Name)
		all[known] = append([]string{c.Name}, alsoAnswersTo[c.Name]...)
	}
	return all
}()

// namesOf returns the names that a client's command answers to.
func namesOf(args []any) []string {
	if len(args) == 0 {
		return nil
	}
	return names(text(args[0]), args, func(arg any, word string) bool {
		s, ok := arg.(string)
		return ok && strings.EqualFold(s, word)
	}, text)
}

// namesOnWire returns the names that a command seen by a proxy answers to.
func namesOnWire(c wire.Command) []string {
	return names(c.Name, c.Args, func(arg []byte, word string) bool {
		return strings.EqualFold(string(arg), word)
	}, func(arg []byte) string { return string(arg) })
}

// names allocates nothing for the usual commands of locks and sales.
func names[T any](name string, args []T, is func(T, string) bool, text func(T) string) []string {
	c, known := rediscmd.Find(name)
	switch {
	case !known:
		return []string{c.Name}
	case c.Does(rediscmd.Container) && len(args) > 1:
		return []string{c.Name, c.Name + "|" + strings.ToUpper(text(args[1]))}
	case c.Name == "SET":
		return setAnswersTo[setOptions(args, is)]
	}
	return answersTo[c]
}

func setOptions[T any](args []T, is func(T, string) bool) (options int) {
	for _, arg := range args[min(3, len(args)):] { // after the key and the value
		switch {
		case is(arg, "NX"):
			options |= withNX
		case is(arg, "EX"), is(arg, "EXAT"):
			options |= withEX
		case is(arg, "PX"), is(arg, "PXAT"):
			options |= withPX
		}
	}
	return options
}

// keyOf returns the first key of a client's command; empty if it has none.
func keyOf(args []any) string {
	if len(args) == 0 {
		return ""
	}
	c, _ := rediscmd.Find(text(args[0]))
	at := c.Key(len(args), func(i int) string { return text(args[i]) })
	if at == 0 {
		return ""
	}
	return text(args[at])
}

// text returns an argument as it is sent over the wire, for the types that command
// names and keys can have.
func text(arg any) string {
	switch a := arg.(type) {
	case string:
		return a
	case []byte:
		return string(a)
	}
	return fmt.Sprint(arg)
}
