package system

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"oversell/internal/yamlfile"
	"oversell/variant"
)

// Schema names the form of a system's file.
const Schema = "oversell-system/1"

// docs explains the file and the protocol.
const docs = "docs/systems.md"

// file is a system's file as it is written.
type file struct {
	Schema    string            `yaml:"schema"`
	Name      string            `yaml:"name"`
	Object    string            `yaml:"object"`
	Summary   string            `yaml:"summary"`
	Promises  []string          `yaml:"promises"`
	Fences    bool              `yaml:"fences"`
	Acks      bool              `yaml:"acks"`
	Command   []string          `yaml:"command"`
	Clients   int               `yaml:"clients"`
	Limit     string            `yaml:"limit"`
	Env       map[string]string `yaml:"env"`
	Monotonic bool              `yaml:"monotonic"`
	Stateless bool              `yaml:"stateless"`
	HTTP      *service          `yaml:"http"`
}

// Read reads a system's file, and refuses what is not one.
func Read(path string) (*System, error) {
	source, err := contents(path)
	if err != nil {
		return nil, err
	}
	var f file
	if err := yamlfile.Decode(source, &f, "system", docs); err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	s, err := f.system()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.Path, s.dir = path, filepath.Dir(path)
	s.source = filepath.Base(path)
	return s, nil
}

// contents are a file's, unless it is none or no system's: a device or a pipe would not end.
func contents(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: want a regular file", path)
	case info.Size() > longestFile:
		return nil, fmt.Errorf("%s: want at most %d bytes", path, longestFile)
	}
	source, err := os.ReadFile(path)
	if err == nil && depth(source) > deepest {
		err = fmt.Errorf("%s: want at most %d lists or objects in each other", path, deepest)
	}
	return source, err
}

// depth is how many brackets are open at once at the most, wherever they stand.
func depth(source []byte) (most int) {
	now := 0
	for _, b := range source {
		switch b {
		case '[', '{':
			now++
			most = max(most, now)
		case ']', '}':
			now = max(0, now-1)
		}
	}
	return most
}

// The limits of what a file may say.
const (
	longestFile    = 1 << 20
	deepest        = 100
	defaultClients = 16
	mostClients    = 100_000
	defaultLimit   = 10 * time.Second
)

// objects are those that a system can be, with what they are reached by.
var objects = []variant.Object{variant.Lock, variant.Sale, variant.Queue, variant.IDs}

var wellNamed = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,62}$`)

// system checks what a file says.
func (f file) system() (*System, error) {
	s := &System{Name: f.Name, Object: variant.Object(f.Object), Summary: f.Summary, Fences: f.Fences, Acks: f.Acks,
		command: f.Command, clients: f.Clients, limit: defaultLimit, monotonic: f.Monotonic, stateless: f.Stateless, env: f.Env, service: f.HTTP}
	switch {
	case f.Schema != "" && f.Schema != Schema:
		return nil, fmt.Errorf("schema %q is not known: it is %s", f.Schema, Schema)
	case !wellNamed.MatchString(f.Name):
		return nil, fmt.Errorf("name %q: want letters, digits, dots and dashes, such as our-shop", f.Name)
	case !slices.Contains(objects, s.Object):
		return nil, fmt.Errorf("object %q is not known: it is one of %s", f.Object, joined(objects))
	case len(f.Command) == 0 && f.HTTP == nil:
		return nil, fmt.Errorf("there is neither command nor http: one says how the system is reached (%s)", docs)
	case len(f.Command) > 0 && f.HTTP != nil:
		return nil, fmt.Errorf("command and http are both given: a system is reached by one of them")
	case f.Fences && s.Object != variant.Lock:
		return nil, fmt.Errorf("fences is for a lock; the object is %s", s.Object)
	case f.Acks && s.Object != variant.Queue:
		return nil, fmt.Errorf("acks is for a queue; the object is %s", s.Object)
	case f.Clients < 0 || f.Clients > mostClients:
		return nil, fmt.Errorf("clients %d: a process serves 1 to %d", f.Clients, mostClients)
	}
	if s.clients == 0 {
		s.clients = defaultClients
	}
	if s.Summary == "" {
		s.Summary = "a system outside of oversell"
	}
	if f.Limit != "" {
		d, err := time.ParseDuration(f.Limit)
		if err != nil || d < time.Millisecond || d > time.Hour {
			return nil, fmt.Errorf("limit %q: want a time from 1ms to 1h, such as 10s", f.Limit)
		}
		s.limit = d
	}
	var err error
	if s.Promises, err = promised(s.Object, f.Promises); err != nil {
		return nil, err
	}
	if len(f.Promises) == 0 {
		s.Promises = s.usual()
	}
	if f.HTTP != nil {
		if err := f.HTTP.complete(s.Object); err != nil {
			return nil, err
		}
		s.http = newHTTP()
	}
	words := f.Command
	if f.HTTP != nil {
		words = f.HTTP.Start
	}
	if err := knownIn(words); err != nil {
		return nil, err
	}
	values := slices.Collect(maps.Values(f.Env))
	if err := closed(slices.Concat(values, words)); err != nil {
		return nil, err
	}
	return s, known(values)
}

// usual are the promises of a system whose file names none: a lock that grants fencing tokens
// promises that they rise, and a queue that hands tasks out again does not promise that it
// hands out each once.
func (s *System) usual() []variant.Property {
	ps := slices.Clone(usual[s.Object])
	if s.Fences {
		ps = append(ps, variant.Fencing)
	}
	return slices.DeleteFunc(ps, func(p variant.Property) bool { return s.Acks && p == variant.NoDuplicateDelivery })
}

// promised reads the promises that a file names.
func promised(of variant.Object, names []string) (ps []variant.Property, err error) {
	all := variant.PropertiesOf(of)
	for _, name := range names {
		p := variant.Property(name)
		switch {
		case slices.Contains(ps, p):
			return nil, fmt.Errorf("the promise %s is given twice", name)
		case slices.Contains(all, p):
			ps = append(ps, p)
		default:
			if near := variant.Nearest(name, texts(all)); len(near) > 0 {
				return nil, fmt.Errorf("%q is no promise of a %s: did you mean %s?", name, of, strings.Join(near, " or "))
			}
			return nil, fmt.Errorf("%q is no promise of a %s: it is one of %s", name, of, joined(all))
		}
	}
	return ps, nil
}

// usual are the promises of a system that names none.
var usual = map[variant.Object][]variant.Property{
	variant.Lock:  {variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
	variant.Sale:  {variant.NoOversell, variant.NoUndersell, variant.OncePerOrder},
	variant.Queue: {variant.NoLostTask, variant.NoDuplicateDelivery},
	variant.IDs:   {variant.UniqueIDs},
}

// placeholders are what a value of env, or a part of an HTTP request, may name in braces.
var placeholders = []string{"{redis}", "{port}", "{order}", "{client}", "{quantity}", "{stock}", "{product}"}

var (
	braces   = regexp.MustCompile(`\{[a-zA-Z][a-zA-Z_]*\}`)
	unclosed = regexp.MustCompile(`\{(redis|port)([^a-zA-Z_}]|$)`)
)

// knownIn is known for the words of a command, which may have braces of their own: only what is
// nearly a placeholder is refused.
func knownIn(words []string) error {
	for _, w := range words {
		for _, p := range braces.FindAllString(w, -1) {
			if meant := variant.Nearest(strings.ToLower(p), []string{"{redis}", "{port}"}); len(meant) > 0 && p != meant[0] {
				return fmt.Errorf("the placeholder %s in %q is not known: did you mean %s?", p, w, strings.Join(meant, " or "))
			}
		}
	}
	return nil
}

// closed refuses a placeholder that does not end.
func closed(values []string) error {
	for _, v := range values {
		if m := unclosed.FindStringSubmatch(v); m != nil {
			return fmt.Errorf("the placeholder {%s in %q has no }", m[1], v)
		}
	}
	return nil
}

// known refuses placeholders that mean nothing.
func known(values []string) error {
	for _, v := range values {
		for _, p := range braces.FindAllString(v, -1) {
			if !slices.Contains(placeholders, p) {
				return fmt.Errorf("the placeholder %s in %q is not known: it is one of %s", p, v, strings.Join(placeholders, ", "))
			}
		}
	}
	return nil
}

func texts[T ~string](all []T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

func joined[T ~string](all []T) string { return strings.Join(texts(all), ", ") }
