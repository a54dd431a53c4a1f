package gate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/lockimpl"
	"oversell/variant"
)

// Position is a place in a plan, from 1; the zero value is nowhere.
type Position struct{ Line, Column int }

func positionOf(n ast.Node) Position {
	// A mapping's own token is the colon of its first pair.
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return tokenAt(m.Values[0].Key.GetToken())
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return tokenAt(m.Key.GetToken())
	}
	return tokenAt(n.GetToken())
}

func tokenAt(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{t.Position.Line, t.Position.Column}
}

// mistake is what is wrong at a place of a plan.
type mistake struct {
	at  Position
	say string
	of  error // what it came from, if anything
}

// Unwrap tells what kind of mistake it is.
func (m *mistake) Unwrap() error { return m.of }

// Error implements error, without the file, which the plan's reader knows.
func (m *mistake) Error() string {
	if m.at.Line == 0 {
		return m.say
	}
	return fmt.Sprintf("%d:%d: %s", m.at.Line, m.at.Column, m.say)
}

func wrong(at Position, format string, a ...any) error {
	return &mistake{at: at, say: printable.Text(phrase.OneLine(fmt.Sprintf(format, a...)))}
}

// positioned makes an error of the YAML library one of ours: one line, with a place.
func positioned(err error) error {
	if m := (*mistake)(nil); errors.As(err, &m) {
		return m
	}
	var e yaml.Error
	if !errors.As(err, &e) {
		return &mistake{say: phrase.OneLine(err.Error())}
	}
	say := phrase.OneLine(e.GetMessage())
	if m := unknownField.FindStringSubmatch(say); m != nil {
		say = unknownKey(m[1], planKeys())
	}
	return &mistake{at: tokenAt(e.GetToken()), say: say}
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// unknownKey says that a key is not known, and what may have been meant.
func unknownKey(key string, known []string) string {
	if near := variant.Nearest(key, known); len(near) > 0 {
		return fmt.Sprintf("the key %q is not known here: did you mean %s?", key, strings.Join(near, " or "))
	}
	return fmt.Sprintf("the key %q is not known here: see docs/gate.md for those that are", key)
}

// scalar is a single value as it was written, with its place.
func scalar(n ast.Node, want string) (string, Position, error) {
	at := positionOf(n)
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, at, nil
	case *ast.LiteralNode:
		return v.Value.Value, at, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, at, nil
	case *ast.AnchorNode:
		return scalar(v.Value, want)
	case *ast.AliasNode:
		return "", at, wrong(at, "aliases are not supported in plans: say what is shared under defaults")
	}
	return "", at, wrong(at, "%s is wanted here, and this is a %s", want, strings.ToLower(n.Type().String()))
}

// textValue is a word or a sentence.
type textValue struct {
	V  string
	at Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (t *textValue) UnmarshalYAML(n ast.Node) (err error) {
	t.V, t.at, err = scalar(n, "a text")
	if err == nil && strings.TrimSpace(t.V) == "" {
		return wrong(t.at, "a text is wanted here, and this is empty")
	}
	return err
}

// number is a whole number of 1 or more; 0: not given.
type number struct {
	V  int
	at Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *number) UnmarshalYAML(n ast.Node) error {
	v, at, err := bounded(n, "repeat", "a whole number")
	c.V, c.at = int(v), at
	return err
}

// bounded reads a number that has a limit of this name.
func bounded(n ast.Node, name, want string) (v float64, at Position, err error) {
	s, at, err := scalar(n, want)
	if err != nil {
		return 0, at, err
	}
	l, _ := limits.Gate.Find(name)
	if v, err = l.Read(s); err != nil {
		return 0, at, wrong(at, "%s %v", printable.Word(s), err)
	}
	return v, at, nil
}

// span is a time; 0: not given.
type span struct {
	V  time.Duration
	at Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (d *span) UnmarshalYAML(n ast.Node) error {
	v, at, err := bounded(n, "budget", "a time like 30s")
	d.V, d.at = time.Duration(v), at
	return err
}

// share is a part in percent; V is 0.1 for 10%; 0: not given.
type share struct {
	V  float64
	at Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *share) UnmarshalYAML(n ast.Node) error {
	s, at, err := scalar(n, "a percentage like 10%")
	if err != nil {
		return err
	}
	p.at = at
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	switch {
	case err != nil, !percent:
		return wrong(at, "%s: a percentage is wanted here, with its sign, like 10%%", s)
	case !(v >= 1 && v <= 1000):
		return wrong(at, "%s: a slow-down is allowed from 1%% (less cannot be told from noise) to 1000%%", s)
	}
	p.V = v / 100
	return nil
}

// list is one value or several.
type list[T any, P interface {
	*T
	yaml.NodeUnmarshaler
}] struct {
	V  []T
	at Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (l *list[T, P]) UnmarshalYAML(n ast.Node) error {
	l.at = positionOf(n)
	nodes := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		nodes = s.Values
		if len(nodes) == 0 {
			return wrong(l.at, "an empty list says nothing: leave it out")
		}
	}
	l.V = nil
	for _, n := range nodes {
		var v T
		if err := P(&v).UnmarshalYAML(n); err != nil {
			return err
		}
		l.V = append(l.V, v)
	}
	return nil
}

// seed fixes the random choices of a run.
type seed struct{ V uint64 }

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (x *seed) UnmarshalYAML(n ast.Node) error {
	s, at, err := scalar(n, "a seed")
	if err != nil {
		return err
	}
	if x.V, err = strconv.ParseUint(s, 10, 64); err != nil {
		return wrong(at, "%s: a seed is a whole number of 0 or more", s)
	}
	return nil
}

// flag is one flag of a command, by name, with what it is set to.
type flag struct {
	name   string
	at     Position
	values []textValue
	listed bool
	shared bool // it was set for several entries, or for another than this
}

// flags are the flags of `oversell run` or `oversell explore`, in the order of the plan.
type flags struct {
	items []flag
	at    Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (f *flags) UnmarshalYAML(n ast.Node) error {
	f.at = positionOf(n)
	pairs, err := pairsOf(n)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		name, at, err := scalar(pair.Key, "the name of a flag")
		if err != nil {
			return err
		}
		item := flag{name: name, at: at}
		nodes := []ast.Node{pair.Value}
		if s, ok := pair.Value.(*ast.SequenceNode); ok {
			nodes, item.listed = s.Values, true
		}
		for _, n := range nodes {
			v, at, err := scalar(n, "a value of the flag "+name)
			if err != nil {
				return err
			}
			item.values = append(item.values, textValue{v, at})
		}
		if f.has(name) {
			return wrong(at, "the flag %s is given twice", name)
		}
		f.items = append(f.items, item)
	}
	return nil
}

// pairsOf are the keys and values of a mapping.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, error) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, nil
	case *ast.AnchorNode:
		return pairsOf(m.Value)
	case *ast.AliasNode:
		return nil, wrong(positionOf(n), "aliases are not supported in plans: say what is shared under defaults")
	}
	return nil, wrong(positionOf(n), "keys with values are wanted here, like {lock: lua-release}, and this is a %s", strings.ToLower(n.Type().String()))
}

func (f flags) has(name string) bool {
	return slices.ContainsFunc(f.items, func(i flag) bool { return i.name == name })
}

// shared tells whether a flag was set for others, too.
func (f flags) shared(name string) bool {
	return slices.ContainsFunc(f.items, func(i flag) bool { return i.name == name && i.shared })
}

// value is what a flag is set to, and whether it is.
func (f flags) value(name string) (string, bool) {
	for _, i := range f.items {
		if i.name == name && len(i.values) > 0 {
			return i.values[0].V, true
		}
	}
	return "", false
}

// over is f with what is set in it instead of the same in base, which others share.
func (f flags) over(base flags) flags {
	all := flags{at: f.at}
	for _, i := range base.items {
		if !f.has(i.name) {
			i.shared = true
			all.items = append(all.items, i)
		}
	}
	all.items = append(all.items, f.items...)
	if all.at.Line == 0 {
		all.at = base.at
	}
	return all
}

// with is f with one flag set.
func (f flags) with(name, value string) flags {
	return flags{items: []flag{{name: name, values: []textValue{{V: value}}}}, at: f.at}.over(f)
}

// without is f without one flag.
func (f flags) without(name string) flags {
	f.items = slices.DeleteFunc(slices.Clone(f.items), func(i flag) bool { return i.name == name })
	return f
}

// today is f with the names that locks have today.
func (f flags) today() flags {
	f.items = slices.Clone(f.items)
	for i, item := range f.items {
		if item.name != "lock" {
			continue
		}
		item.values = slices.Clone(item.values)
		for k, v := range item.values {
			names := strings.Split(v.V, ",")
			for n := range names {
				names[n] = lockimpl.Today(names[n])
			}
			item.values[k].V = strings.Join(names, ",")
		}
		f.items[i] = item
	}
	return f
}

// args are the flags as a command line has them.
func (f flags) args() (args []string) {
	for _, i := range f.items {
		for _, v := range i.values {
			args = append(args, "--"+i.name+"="+v.V)
		}
	}
	return args
}
