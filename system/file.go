package system

import (
	"errors"
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

// Schema identifies the format of a system's file.
const Schema = "oversell-system/1"

// docs is the document about the file and the protocol.
const docs = "docs/systems.md"

// file is the content of a system's file.
type file struct {
	Schema    string            `yaml:"schema"`
	Name      string            `yaml:"name"`
	Object    string            `yaml:"object"`
	Summary   string            `yaml:"summary"`
	Promises  []string          `yaml:"promises"`
	Fences    bool              `yaml:"fences"`
	Acks      bool              `yaml:"acks"`
	Command   []string          `yaml:"command"`
	Clients   *int              `yaml:"clients"`
	Limit     string            `yaml:"limit"`
	Start     string            `yaml:"start"`
	Env       map[string]string `yaml:"env"`
	Monotonic bool              `yaml:"monotonic"`
	Stateless bool              `yaml:"stateless"`
	HTTP      *service          `yaml:"http"`
}

// Read reads and validates a system's file.
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

// contents returns the contents of a regular file of sensible size. It refuses devices and pipes, which may not
// end.
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
		err = fmt.Errorf("%s: want at most %d levels of lists and objects", path, deepest)
	}
	return source, err
}

// depth returns the maximum nesting depth of brackets, also of those inside strings.
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

// Limits of the values in a file.
const (
	longestFile    = 1 << 20
	deepest        = 100
	defaultClients = 16
	mostClients    = 100_000
	defaultLimit   = 10 * time.Second
	defaultStart   = 30 * time.Second
)

// objects are the kinds of objects that a system can be.
var objects = []variant.Object{variant.Lock, variant.Sale, variant.Queue, variant.IDs}

var wellNamed = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,62}$`)

// system validates a file.
func (f file) system() (*System, error) {
	s := &System{Name: f.Name, Object: variant.Object(f.Object), Summary: f.Summary, Fences: f.Fences, Acks: f.Acks,
		command: f.Command, clients: defaultClients, monotonic: f.Monotonic, stateless: f.Stateless, env: f.Env, service: f.HTTP}
	switch {
	case f.Schema != "" && f.Schema != Schema:
		return nil, fmt.Errorf("schema %q is not known: it is %s", f.Schema, Schema)
	case !wellNamed.MatchString(f.Name):
		return nil, fmt.Errorf("name %q: want at most 63 letters, digits, dots, dashes and underscores, a letter or digit first, such as our-shop", f.Name)
	case !slices.Contains(objects, s.Object):
		return nil, fmt.Errorf("object %q is not known: it is one of %s", f.Object, joined(objects))
	case len(f.Command) == 0 && f.HTTP == nil:
		return nil, fmt.Errorf("there is neither command nor http: one is required (%s)", docs)
	case len(f.Command) > 0 && f.HTTP != nil:
		return nil, fmt.Errorf("command and http are both given: only one is allowed")
	case f.Fences && s.Object != variant.Lock:
		return nil, fmt.Errorf("fences is for a lock; the object is %s", s.Object)
	case f.Acks && s.Object != variant.Queue:
		return nil, fmt.Errorf("acks is for a queue; the object is %s", s.Object)
	case f.Clients != nil && (*f.Clients < 1 || *f.Clients > mostClients):
		return nil, fmt.Errorf("clients %d: a process serves 1 to %d", *f.Clients, mostClients)
	}
	if f.Clients != nil {
		s.clients = *f.Clients
	}
	if s.Summary == "" {
		s.Summary = "a system outside of oversell"
	}
	var err error
	if s.limit, err = duration("limit", f.Limit, defaultLimit); err != nil {
		return nil, err
	}
	if s.start, err = duration("start", f.Start, max(defaultStart, s.limit)); err != nil {
		return nil, err
	}
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
	if f.HTTP != nil && slices.Contains(s.Promises, variant.OncePerOrder) && !f.HTTP.Buy.has("{order}") {
		return nil, errors.New("http.buy: no {order} stands in the path, the body or the headers, so the service cannot tell an order that is sent again, and once-per-order is promised: add it, or name promises without once-per-order")
	}
	return s, f.checkProgram()
}

// duration returns the time that stands under a key, or usual if none does.
func duration(key, text string, usual time.Duration) (time.Duration, error) {
	if text == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > time.Hour {
		return 0, fmt.Errorf("%s %q: want a time from 1ms to 1h, such as 10s", key, text)
	}
	return d, nil
}

// checkProgram refuses a command or an environment with which no program can be started.
func (f file) checkProgram() error {
	words, key, filled := f.Command, "command", []string{"{redis}"}
	if f.HTTP != nil {
		words, key, filled = f.HTTP.Start, "http.start", []string{"{redis}", "{port}"}
	}
	if len(words) == 0 && len(f.Env) > 0 {
		return errors.New("env is for http.start, and there is no start")
	}
	for _, word := range words {
		if err := (place{key, filled, false}).check(word); err != nil {
			return err
		}
	}
	if len(words) > 0 && words[0] == "" {
		return fmt.Errorf("%s: the first word is empty: want a program", key)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: the name %q: want one without = and NUL, such as REDIS_URL", name)
		}
		if err := (place{"env." + name, filled, true}).check(f.Env[name]); err != nil {
			return err
		}
	}
	return nil
}

// usual returns the default promises of a system: a lock that grants fencing tokens promises that they rise, and a
// queue that delivers tasks again does not promise to deliver each once.
func (s *System) usual() []variant.Property {
	ps := slices.Clone(usual[s.Object])
	if s.Fences {
		ps = append(ps, variant.Fencing)
	}
	return slices.DeleteFunc(ps, func(p variant.Property) bool { return s.Acks && p == variant.NoDuplicateDelivery })
}

// promised parses the promises of a file.
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
				return nil, fmt.Errorf("%q is not a promise of a %s: did you mean %s?", name, of, strings.Join(near, " or "))
			}
			return nil, fmt.Errorf("%q is not a promise of a %s: it is one of %s", name, of, joined(all))
		}
	}
	return ps, nil
}

// usual are the default promises by object.
var usual = map[variant.Object][]variant.Property{
	variant.Lock:  {variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
	variant.Sale:  {variant.NoOversell, variant.NoUndersell, variant.OncePerOrder},
	variant.Queue: {variant.NoLostTask, variant.NoDuplicateDelivery},
	variant.IDs:   {variant.UniqueIDs},
}

// place is a part of a file in which placeholders are replaced.
type place struct {
	name   string
	filled []string // the valid placeholders
	// strict means that every word that looks like a placeholder must be one. A word of a command may contain other
	// braces, as in awk '{print}'.
	strict bool
}

var (
	braces   = regexp.MustCompile(`\{[a-zA-Z][a-zA-Z_]*\}`)
	unclosed = regexp.MustCompile(`\{(redis|port|order|client|quantity|stock|product)([^a-zA-Z_}]|$)`)
	// reserved are the placeholders of all parts of a file.
	reserved = []string{"{redis}", "{port}", "{order}", "{client}", "{quantity}", "{stock}", "{product}"}
)

// check refuses a placeholder that is not valid in this place, or is not closed.
func (p place) check(text string) error {
	if strings.Contains(text, "\x00") {
		return fmt.Errorf("%s: %q contains a NUL", p.name, text)
	}
	for _, m := range unclosed.FindAllStringSubmatch(text, -1) {
		if whole := "{" + m[1] + "}"; p.strict || slices.Contains(p.filled, whole) {
			return fmt.Errorf("%s: the placeholder {%s in %q has no }", p.name, m[1], text)
		}
	}
	for _, found := range braces.FindAllString(text, -1) {
		if slices.Contains(p.filled, found) {
			continue
		}
		switch near := variant.Nearest(strings.ToLower(found), p.filled); {
		case slices.Contains(reserved, found):
			return fmt.Errorf("%s: the placeholder %s in %q is not valid there: want %s", p.name, found, text, orJoined(p.filled))
		case len(near) > 0:
			return fmt.Errorf("%s: the placeholder %s in %q is not known: did you mean %s?", p.name, found, text, strings.Join(near, " or "))
		case p.strict:
			return fmt.Errorf("%s: the placeholder %s in %q is not known: want %s", p.name, found, text, orJoined(p.filled))
		}
	}
	return nil
}

// orJoined joins words with commas and "or".
func orJoined(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

func texts[T ~string](all []T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

func joined[T ~string](all []T) string { return strings.Join(texts(all), ", ") }
