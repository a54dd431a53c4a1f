package redismodel

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/internal/rediscmd"
	"oversell/internal/redismodel/lua"
)

// Info is what the sender of a command needs to know besides the reply.
type Info struct {
	// Unknown names what the model does not implement: a command, an option, a Lua function. If it
	// is set, the state is unchanged and there is no reply.
	Unknown string
	// Clock: the reply or the next state depends on the time, not on the state alone.
	Clock bool
	// Touched: something was written, perhaps the same as before.
	Touched bool
	// Expiring are the keys whose expiry was set, even to the same time left. Setting it again at a
	// later time would change it.
	Expiring []string
	// Hashed are keys of Lua tables whose hashes determined an order that a script saw. With other
	// keys the order may differ.
	Hashed []string
	// Unordered are the parts of the reply whose order the server may choose.
	Unordered []Unordered
}

// Unordered is an array without a defined order in a reply.
type Unordered struct {
	At   int // byte offset of the array in the reply
	N    int // number of items, which may change places
	Unit int // number of bulk strings in each item: 2 for HGETALL, otherwise 1
}

// exec is a command, or a transaction, while it runs: a state that may change.
// The slices are those of the state before until the first write.
type exec struct {
	State
	ownEntries, ownWatches bool

	now  time.Duration
	conn int
	out  []byte // replies
	info Info

	inScript bool
	asked    bool // TIME was executed; a real server would return a later time for the next one
	commands map[string]*command
	// loaded are scripts that the server knows from now on, unless something
	// turns out to be unknown.
	loaded []*script
}

// command is an entry of the model's table of commands. Facts common to all servers are in the table of package
// rediscmd.
type command struct {
	*rediscmd.Command
	name string
	run  func(x *exec, args []string)
}

// Do executes one command of a connection at a time since the Unix epoch. A command that the model does not know does
// not change the state and has no reply.
func (s *State) Do(now time.Duration, conn int, cmd []string) (*State, []byte, Info) {
	x := exec{State: *s, now: now, conn: conn, commands: table}
	x.do(cmd)
	return x.end(s)
}

// end returns the next state, the replies and the info; before is the state in which exec began.
func (x *exec) end(before *State) (*State, []byte, Info) {
	if x.info.Unknown != "" {
		return before, nil, Info{Unknown: x.info.Unknown}
	}
	for _, s := range x.loaded {
		x.family.setLoaded(s)
	}
	x.info.Touched = x.ownEntries || x.ownWatches
	if !x.info.Touched {
		return before, x.out, x.info
	}
	next := x.State
	return &next, x.out, x.info
}

// do executes a command and appends its reply.
func (x *exec) do(args []string) {
	if c := x.lookup(args); c != nil {
		c.run(x, args)
	}
}

// lookup returns the command that args name, if it may have so many arguments. Otherwise it replies an error, or reports
// the command as unknown, and returns nil.
func (x *exec) lookup(args []string) *command {
	if len(args) == 0 {
		x.Unknown("a command without a name")
		return nil
	}
	c := x.find(args)
	switch {
	case c == nil && noRedisHas(args[0]) && x.inScript:
		x.Err("ERR Unknown Redis command called from script")
	case c == nil && noRedisHas(args[0]):
		x.missing(args)
	case c == nil && x.command(args[0]) != nil:
		x.Unknown("the command " + args[0] + " " + args[1])
	case c == nil:
		x.Unknown("the command " + args[0])
	case !c.Fits(len(args)) && x.inScript:
		x.Err("ERR Wrong number of args calling Redis command from script")
	case x.inScript && c.Does(rediscmd.NoScript):
		x.Err("ERR This Redis command is not allowed from script")
	case !c.Fits(len(args)):
		x.wrongArity(c.name)
	default:
		return c
	}
	return nil
}

// noRedisHas reports whether no Redis server has a command of this name, so that the reply is an
// error. A command of a later version or of a module is unknown to the model instead.
func noRedisHas(name string) bool {
	_, known := rediscmd.Find(name)
	switch {
	case strings.Contains(name, "|"): // only the tables name subcommands like this
		return true
	case known, strings.Contains(name, "."): // of a module, as JSON.GET
		return false
	}
	return !strings.EqualFold(name, "post") && !strings.EqualFold(name, "host:") // a server closes the connection
}

// missing replies with the error of Redis for a command that does not exist.
func (x *exec) missing(args []string) {
	const most = 128
	var first strings.Builder
	for _, arg := range args[1:] {
		if first.Len() >= most {
			break
		}
		text := lua.CString(arg)
		first.WriteString("'" + text[:min(len(text), most-first.Len())] + "' ")
	}
	name := lua.CString(args[0])
	x.Err("ERR unknown command '" + name[:min(len(name), most)] + "', with args beginning with: " + first.String())
}

// find returns a command of the model, or nil. A subcommand, as of XGROUP or SCRIPT, is found by
// both its words.
func (x *exec) find(args []string) *command {
	if strings.Contains(args[0], "|") {
		return nil
	}
	c := x.command(args[0])
	if c != nil && c.Does(rediscmd.Container) && len(args) > 1 {
		return x.command(args[0] + "|" + args[1])
	}
	return c
}

func (x *exec) command(name string) *command {
	if c := x.commands[name]; c != nil {
		return c
	}
	return x.commands[strings.ToLower(name)]
}

// Transaction executes commands as MULTI, cmds …, EXEC on a connection, and
// replies as a server does to all of these.
func (s *State) Transaction(now time.Duration, conn int, cmds [][]string) (*State, []byte, Info) {
	x := exec{State: *s, now: now, conn: conn, commands: table}
	x.ok()
	var queued [][]string
	refused := false
	for _, cmd := range cmds {
		replies := len(x.out)
		c := x.lookup(cmd)
		switch {
		case c == nil:
			refused = refused || len(x.out) > replies
		case c.Does(rediscmd.Watches):
			x.Err("ERR WATCH inside MULTI is not allowed")
		default:
			queued = append(queued, cmd)
			x.Simple("QUEUED")
		}
	}
	dirty := x.unwatch()
	switch {
	case refused:
		x.Err("EXECABORT Transaction discarded because of previous errors.")
	case dirty:
		x.nullArray()
	default:
		x.Array(len(queued))
		for _, cmd := range queued {
			x.do(cmd)
		}
	}
	return x.end(s)
}

// watched returns the place of this connection's watch.
func (x *exec) watched() (int, bool) {
	for i := range x.watches {
		if x.watches[i].conn >= x.conn {
			return i, x.watches[i].conn == x.conn
		}
	}
	return len(x.watches), false
}

// unwatch forgets what this connection watches and reports whether it was touched.
func (x *exec) unwatch() (dirty bool) {
	i, ok := x.watched()
	if !ok {
		return false
	}
	dirty = x.watches[i].dirty
	x.watches, x.ownWatches = cut(x.watches, i), true
	return dirty
}

func (x *exec) watch(keys []string) {
	i, ok := x.watched()
	if ok && x.watches[i].dirty {
		return
	}
	w := watch{conn: x.conn}
	if ok {
		w.keys = x.watches[i].keys
	}
	w.keys = slices.Concat(w.keys, keys)
	slices.Sort(w.keys)
	w.keys = slices.Compact(w.keys)
	if ok {
		x.watches = cut(x.watches, i)
	}
	x.watches, x.ownWatches = insert(x.watches, i, w), true
}

// touch marks the clients that watch a key.
func (x *exec) touch(key string) {
	for i, w := range x.watches {
		if w.dirty || !slices.Contains(w.keys, key) {
			continue
		}
		if !x.ownWatches {
			x.watches, x.ownWatches = slices.Clone(x.watches), true
		}
		x.watches[i] = watch{conn: w.conn, dirty: true}
	}
}

// own makes the entries writable.
func (x *exec) own() {
	if !x.ownEntries {
		entries := make([]entry, len(x.entries), len(x.entries)+1)
		copy(entries, x.entries)
		x.entries, x.ownEntries = entries, true
	}
}

// get returns the value of a key, nil if there is none.
func (x *exec) get(key string) value {
	if i, ok := find(x.entries, key); ok {
		return x.entries[i].val
	}
	return nil
}

// typed returns the value of a key, or the zero value if the key does not exist. If the value has
// another type, typed replies WRONGTYPE and ok is false.
func typed[T value](x *exec, key string) (v T, ok bool) {
	found := x.get(key)
	if found == nil {
		return v, true
	}
	if v, ok = found.(T); !ok {
		x.wrongType()
	}
	return v, ok
}

// on returns the implementation of a command that needs a value of type T under its key, or no
// value.
func on[T value](run func(x *exec, v T, a []string)) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		if v, ok := typed[T](x, a[1]); ok {
			run(x, v, a)
		}
	}
}

// collection is a value that is a slice.
type collection[E any] interface {
	value
	~[]E
}

// size replies how many elements a collection has.
func size[S collection[E], E any](x *exec, v S, _ []string) { x.Int(int64(len(v))) }

// remove returns the implementation of a command, such as SREM, that removes the named elements of
// a collection and replies how many there were.
func remove[S collection[E], E any](without func(v S, name string) S) func(x *exec, a []string) {
	return on(func(x *exec, v S, a []string) {
		before := len(v)
		for _, name := range a[2:] {
			v = without(v, name)
		}
		if len(v) < before {
			putOrDelete(x, a[1], v)
		}
		x.Int(int64(before - len(v)))
	})
}

// put writes a value; the expiry of a key that exists stays.
func (x *exec) put(key string, v value) {
	x.putUntouched(key, v)
	x.touch(key)
}

// putUntouched is put, but does not mark the watches of the key as dirty.
func (x *exec) putUntouched(key string, v value) {
	x.own()
	i, ok := find(x.entries, key)
	if ok {
		x.entries[i].val = v
	} else {
		x.entries = slices.Insert(x.entries, i, entry{key, noExpiry, v})
	}
}

// putOrDelete writes a collection, or deletes the key of an empty one.
func putOrDelete[S collection[E], E any](x *exec, key string, v S) {
	if len(v) == 0 {
		x.delete(key)
		return
	}
	x.put(key, v)
}

// replace writes a value and its expiry. A past expiry deletes it at once.
func (x *exec) replace(key string, v value, left int64) {
	x.put(key, v)
	x.setLeft(key, left)
}

// setLeft sets the expiry of an existing key. A past expiry deletes it.
func (x *exec) setLeft(key string, left int64) {
	if left <= 0 && left != noExpiry {
		x.delete(key)
		return
	}
	x.own()
	i, _ := find(x.entries, key)
	x.entries[i].left = left
	if left != noExpiry {
		x.info.Expiring = append(x.info.Expiring, key)
	}
	x.touch(key)
}

func (x *exec) delete(key string) bool {
	i, ok := find(x.entries, key)
	if !ok {
		return false
	}
	x.own()
	x.entries = slices.Delete(x.entries, i, i+1)
	x.touch(key)
	return true
}

// clock returns the time, in microseconds. A command that calls it depends on the time.
func (x *exec) clock() int64 {
	x.info.Clock = true
	return x.now.Microseconds()
}

// Unknown records something that the model does not implement. Only the first is kept.
func (x *exec) Unknown(what string) {
	if x.info.Unknown == "" {
		x.info.Unknown = what
	}
}

// The replies.

func (x *exec) line(kind byte, s string) {
	x.out = append(append(append(x.out, kind), s...), "\r\n"...)
}

func (x *exec) number(kind byte, n int64) {
	x.out = append(strconv.AppendInt(append(x.out, kind), n, 10), "\r\n"...)
}

func (x *exec) ok()             { x.out = append(x.out, "+OK\r\n"...) }
func (x *exec) Simple(s string) { x.line('+', s) }
func (x *exec) Err(s string)    { x.line('-', lua.OneLine(s)) }
func (x *exec) Int(n int64)     { x.number(':', n) }
func (x *exec) Array(n int)     { x.number('*', int64(n)) }
func (x *exec) Null()           { x.out = append(x.out, "$-1\r\n"...) }
func (x *exec) nullArray()      { x.out = append(x.out, "*-1\r\n"...) }

func (x *exec) Bulk(s string) {
	x.number('$', int64(len(s)))
	x.out = append(append(x.out, s...), "\r\n"...)
}

func (x *exec) bulkOrNull(s string, ok bool) {
	if !ok {
		x.Null()
		return
	}
	x.Bulk(s)
}

func (x *exec) bulks(texts []string) {
	x.Array(len(texts))
	for _, t := range texts {
		x.Bulk(t)
	}
}

func (x *exec) bool(b bool) {
	if b {
		x.Int(1)
	} else {
		x.Int(0)
	}
}

func (x *exec) double(f float64) { x.Bulk(formatDouble(f)) }

func (x *exec) wrongArity(name string) {
	x.Err("ERR wrong number of arguments for '" + name + "' command")
}
func (x *exec) wrongType() {
	x.Err("WRONGTYPE Operation against a key holding the wrong kind of value")
}
func (x *exec) syntax()     { x.Err("ERR syntax error") }
func (x *exec) notInteger() { x.Err("ERR value is not an integer or out of range") }
func (x *exec) notFloat()   { x.Err("ERR value is not a valid float") }
