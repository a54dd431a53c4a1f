package gate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"oversell/internal/limits"
	"oversell/internal/printable"
	"oversell/internal/yamlfile"
	"oversell/lockimpl"
)

// docs is the document about plans.
const docs = "docs/gate.md"

// scalar returns a single value as written, with its position.
func scalar(n ast.Node, want string) (string, yamlfile.Position, error) {
	at := yamlfile.PositionOf(n)
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
		return "", at, yamlfile.Errorf(at, "aliases are not supported in plans: put shared settings under defaults")
	}
	return "", at, yamlfile.Errorf(at, "want %s, not a %s", want, strings.ToLower(n.Type().String()))
}

// textValue is a word or a sentence.
type textValue struct {
	V  string
	at yamlfile.Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (t *textValue) UnmarshalYAML(n ast.Node) (err error) {
	t.V, t.at, err = scalar(n, "a text")
	if err == nil && strings.TrimSpace(t.V) == "" {
		return yamlfile.Errorf(t.at, "want a text, and this is empty")
	}
	return err
}

// number is a whole number of 1 or more; 0: not given.
type number struct {
	V  int
	at yamlfile.Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *number) UnmarshalYAML(n ast.Node) error {
	v, at, err := bounded(n, "repeat", "a whole number")
	c.V, c.at = int(v), at
	return err
}

// bounded reads a number that has a limit of this name.
func bounded(n ast.Node, name, want string) (v float64, at yamlfile.Position, err error) {
	s, at, err := scalar(n, want)
	if err != nil {
		return 0, at, err
	}
	l, _ := limits.Gate.Find(name)
	if v, err = l.Read(s); err != nil {
		return 0, at, yamlfile.Errorf(at, "%s %v", printable.Word(s), err)
	}
	return v, at, nil
}

// span is a duration; 0: not given.
type span struct {
	V  time.Duration
	at yamlfile.Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (d *span) UnmarshalYAML(n ast.Node) error {
	v, at, err := bounded(n, "budget", "a time like 30s")
	d.V, d.at = time.Duration(v), at
	return err
}

// share is a percentage; V is 0.1 for 10%; 0: not given.
type share struct{ V float64 }

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *share) UnmarshalYAML(n ast.Node) error {
	s, at, err := scalar(n, "a percentage like 10%")
	if err != nil {
		return err
	}
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	switch {
	case err != nil, !percent:
		return yamlfile.Errorf(at, "want a percentage with its sign, like 10%%, not %s", s)
	case !(v >= 1 && v <= 1000):
		return yamlfile.Errorf(at, "%s: the allowed slow-down must be 1%% (less cannot be told from noise) to 1000%%", s)
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
	at yamlfile.Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (l *list[T, P]) UnmarshalYAML(n ast.Node) error {
	l.at = yamlfile.PositionOf(n)
	nodes := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		nodes = s.Values
		if len(nodes) == 0 {
			return yamlfile.Errorf(l.at, "the list is empty: leave it out")
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
		return yamlfile.Errorf(at, "%s: a seed is a whole number of 0 or more", s)
	}
	return nil
}

// flag is one flag of a command, with its value.
type flag struct {
	name   string
	at     yamlfile.Position
	values []textValue
	listed bool
	shared bool // also set for other entries or commands
}

// flags are the flags of `oversell run` or `oversell explore`, in the order of the plan.
type flags struct {
	items []flag
	at    yamlfile.Position
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (f *flags) UnmarshalYAML(n ast.Node) error {
	f.at = yamlfile.PositionOf(n)
	return eachPair(n, "the name of a flag", func(name string, at yamlfile.Position, value ast.Node) error {
		item := flag{name: name, at: at}
		nodes := []ast.Node{value}
		if s, ok := value.(*ast.SequenceNode); ok {
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
			return yamlfile.Errorf(at, "the flag %s is given twice", name)
		}
		f.items = append(f.items, item)
		return nil
	})
}

// eachPair does something with every key and value of a mapping until that fails; want says what the keys are.
func eachPair(n ast.Node, want string, do func(key string, at yamlfile.Position, value ast.Node) error) error {
	pairs, err := pairsOf(n)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		key, at, err := scalar(p.Key, want)
		if err != nil {
			return err
		}
		if err := do(key, at, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// pairsOf returns the keys and values of a mapping.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, error) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, nil
	case *ast.AnchorNode:
		return pairsOf(m.Value)
	case *ast.AliasNode:
		return nil, yamlfile.Errorf(yamlfile.PositionOf(n), "aliases are not supported in plans: put shared settings under defaults")
	}
	return nil, yamlfile.Errorf(yamlfile.PositionOf(n), "want keys with values, like {lock: lua-release}, not a %s", strings.ToLower(n.Type().String()))
}

func (f flags) has(name string) bool {
	return slices.ContainsFunc(f.items, func(i flag) bool { return i.name == name })
}

// shared reports whether a flag was set for others, too.
func (f flags) shared(name string) bool {
	return slices.ContainsFunc(f.items, func(i flag) bool { return i.name == name && i.shared })
}

// value returns the value of a flag, and whether it is set.
func (f flags) value(name string) (string, bool) {
	for _, i := range f.items {
		if i.name == name && len(i.values) > 0 {
			return i.values[0].V, true
		}
	}
	return "", false
}

// over returns the flags of base, which other entries share, overridden by those set in
// f.
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

// with returns f with one flag set.
func (f flags) with(name, value string) flags {
	return flags{items: []flag{{name: name, values: []textValue{{V: value}}}}, at: f.at}.over(f)
}

// without returns f without one flag.
func (f flags) without(name string) flags {
	f.items = slices.DeleteFunc(slices.Clone(f.items), func(i flag) bool { return i.name == name })
	return f
}

// today returns f with the current names of locks.
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
				names[n] = lockimpl.CurrentName(names[n])
			}
			item.values[k].V = strings.Join(names, ",")
		}
		f.items[i] = item
	}
	return f
}

// args returns the flags as command-line arguments.
func (f flags) args() (args []string) {
	for _, i := range f.items {
		for _, v := range i.values {
			args = append(args, "--"+i.name+"="+v.V)
		}
	}
	return args
}
