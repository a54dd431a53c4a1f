package redismodel

import (
	"strings"
	"sync"

	"oversell/internal/rediscmd"
	"oversell/internal/redismodel/lua"
)

var scriptCommands = []command{
	{name: "eval", run: eval},
	{name: "evalsha", run: evalsha},
	{name: "script"},
	{name: "script|load", run: scriptLoad},
	{name: "script|exists", run: scriptExists},
	{name: "script|flush", run: scriptFlush},
}

// family is shared by the states made from the same Empty: the compiled scripts, and idle Lua machines.
type family struct {
	mu      sync.Mutex
	scripts map[string]*script // by SHA
	shas    map[string]string  // by text
	idle    sync.Pool          // of *lua.Machine
}

// script is one script. Either it is compiled, or unknown says why not.
type script struct {
	sha      string
	compiled *lua.Program
	unknown  string
	// loaded: the server knows it.
	loaded bool
}

func newFamily() *family {
	return &family{scripts: map[string]*script{}, shas: map[string]string{}}
}

// script returns a text's script, compiled.
func (f *family) script(text string) *script {
	f.mu.Lock()
	defer f.mu.Unlock()
	sha, ok := f.shas[text]
	if !ok {
		sha = rediscmd.SHA1(text)
		f.shas[text] = sha
	}
	if s := f.scripts[sha]; s != nil {
		return s
	}
	s := &script{sha: sha}
	s.compiled, s.unknown = lua.Compile(text)
	f.scripts[sha] = s
	return s
}

// load loads a script, as SCRIPT LOAD does, and returns its SHA-1.
func (f *family) load(text string) (sha string) {
	s := f.script(text)
	f.setLoaded(s)
	return s.sha
}

func (f *family) setLoaded(s *script) {
	f.mu.Lock()
	s.loaded = true
	f.mu.Unlock()
}

// known returns the script that the server knows under a SHA, or nil.
func (f *family) known(sha string) *script {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.scripts[sha]
	if s == nil {
		s = f.scripts[strings.ToLower(sha)]
	}
	if s == nil || !s.loaded {
		return nil
	}
	return s
}

// known returns the script with this SHA-1 that is loaded, or that this command or transaction
// loads; otherwise nil.
func (x *exec) known(sha string) *script {
	for _, s := range x.loaded {
		if strings.EqualFold(s.sha, sha) {
			return s
		}
	}
	return x.family.known(sha)
}

func (f *family) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.scripts {
		s.loaded = false
	}
}

func eval(x *exec, a []string) {
	if n, ok := x.keyCount(a); ok {
		s := x.family.script(a[1])
		x.loaded = append(x.loaded, s)
		x.run(s, a[3:3+n], a[3+n:])
	}
}

func evalsha(x *exec, a []string) {
	if len(a[1]) != 40 {
		x.noScript()
		return
	}
	n, ok := x.keyCount(a)
	if !ok {
		return
	}
	s := x.known(a[1])
	if s == nil {
		x.noScript()
		return
	}
	x.run(s, a[3:3+n], a[3+n:])
}

func (x *exec) noScript() { x.Err(rediscmd.ScriptMissing) }

// keyCount parses the argument numkeys of EVAL and EVALSHA, or replies an error.
func (x *exec) keyCount(a []string) (int, bool) {
	n, ok := x.int64Arg(a[2])
	switch {
	case !ok:
		return 0, false
	case n > int64(len(a)-3):
		x.Err("ERR Number of keys can't be greater than number of args")
		return 0, false
	case n < 0:
		x.Err("ERR Number of keys can't be negative")
		return 0, false
	}
	return int(n), true
}

func (x *exec) run(s *script, keys, argv []string) {
	if s.unknown != "" {
		x.Unknown(s.unknown)
		return
	}
	m, _ := x.family.idle.Get().(*lua.Machine)
	if m == nil {
		m = lua.New()
	}
	x.inScript = true
	m.Run(x, s.compiled, s.sha, keys, argv)
	x.inScript = false
	x.family.idle.Put(m)
}

// Call executes a command for a script and returns the reply, which is valid until the next call.
func (x *exec) Call(args []string) []byte {
	start := len(x.out)
	x.do(args)
	reply := x.out[start:]
	x.out = x.out[:start]
	return reply
}

// Stopped names what the model did not know, if anything.
func (x *exec) Stopped() string { return x.info.Unknown }

// Hashed notes a key of a Lua table by whose hash an order was decided.
func (x *exec) Hashed(key string) { x.info.Hashed = append(x.info.Hashed, key) }

func scriptLoad(x *exec, a []string) {
	s := x.family.script(a[2])
	if s.unknown != "" {
		x.Unknown(s.unknown)
		return
	}
	x.loaded = append(x.loaded, s)
	x.Bulk(s.sha)
}

func scriptExists(x *exec, a []string) {
	x.Array(len(a) - 2)
	for _, sha := range a[2:] {
		x.bool(x.known(sha) != nil)
	}
}

func scriptFlush(x *exec, a []string) {
	if len(a) > 2 {
		x.Unknown("the option " + a[2] + " of SCRIPT FLUSH")
		return
	}
	x.loaded = nil
	x.family.flush()
	x.ok()
}
