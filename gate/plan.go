package gate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"oversell/history"
	"oversell/internal/yamlfile"
	"oversell/variant"
)

// PlanSchema identifies the format of a plan.
const PlanSchema = "oversell-gate-plan/1"

// document is the content of a plan file. Its fields are the plan's schema: docs/gate.md explains them, and
// examples/gate/plan.schema.json lists them for editors.
type document struct {
	Schema      textValue     `yaml:"schema"`
	Defaults    defaults      `yaml:"defaults"`
	Controls    namedControls `yaml:"controls"`
	Safety      []entry       `yaml:"safety"`
	Performance []comparison  `yaml:"performance"`
}

// defaults are the default settings of entries.
type defaults struct {
	Run     flags   `yaml:"run"`
	Explore flags   `yaml:"explore"`
	Repeat  number  `yaml:"repeat"`
	Budget  span    `yaml:"budget"`
	Seeds   seeds   `yaml:"seeds"`
	Control control `yaml:"control"`

	Rounds         number `yaml:"rounds"`
	MaxSlowdown    share  `yaml:"max_slowdown"`
	MaxP99Slowdown share  `yaml:"max_p99_slowdown"`
}

// entry is an entry under safety. It guards one or more combinations of variants, whose promises must hold, or break.
type entry struct {
	at yamlfile.Position

	Name   textValue `yaml:"name"`
	Expect textValue `yaml:"expect"`

	// Exactly one of the three says what to carry out.
	Run     *flags    `yaml:"run"`
	Explore *flags    `yaml:"explore"`
	Command *argument `yaml:"command"`

	// History and Dir belong to Command: the history that it writes, and its working directory.
	History textValue `yaml:"history"`
	Dir     textValue `yaml:"dir"`

	Control control  `yaml:"control"`
	Repeat  number   `yaml:"repeat"`
	Budget  span     `yaml:"budget"`
	Seeds   seeds    `yaml:"seeds"`
	Limits  ceilings `yaml:"limits"`
}

// comparison is a candidate whose speed is guarded.
type comparison struct {
	at yamlfile.Position

	Name     textValue `yaml:"name"`
	Run      *flags    `yaml:"run"`
	Baseline *flags    `yaml:"baseline"`
	Build    textValue `yaml:"build"`

	Measure        list[textValue, *textValue] `yaml:"measure"`
	Operation      textValue                   `yaml:"operation"`
	MaxSlowdown    share                       `yaml:"max_slowdown"`
	MaxP99Slowdown share                       `yaml:"max_p99_slowdown"`
	Rounds         number                      `yaml:"rounds"`
	Budget         span                        `yaml:"budget"`
}

type (
	argument = list[textValue, *textValue]
	seeds    = list[seed, *seed]
)

// control is what must be caught for an entry to count: none, auto, a name, flags set differently, or another
// command.
type control struct {
	word    textValue
	flags   *flags
	command *argument
	history textValue
	at      yamlfile.Position
}

// Keywords for controls.
const (
	noControl   = "none"
	autoControl = "auto"
)

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *control) UnmarshalYAML(n ast.Node) error {
	c.at = yamlfile.PositionOf(n)
	pairs, err := pairsOf(n)
	if err != nil {
		return c.word.UnmarshalYAML(n)
	}
	if !slices.ContainsFunc(pairs, func(p *ast.MappingValueNode) bool { return p.Key.String() == "command" }) {
		c.flags = &flags{}
		return c.flags.UnmarshalYAML(n)
	}
	for _, p := range pairs {
		switch key := p.Key.String(); key {
		case "command":
			c.command = &argument{}
			err = c.command.UnmarshalYAML(p.Value)
		case "history":
			err = c.history.UnmarshalYAML(p.Value)
		default:
			err = yamlfile.Errorf(yamlfile.TokenAt(p.Key.GetToken()), "%s", yamlfile.UnknownKey(key, []string{"command", "history"}, docs))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c control) given() bool { return c.at.Line > 0 }

// namedControls are controls shared by several entries.
type namedControls map[string]control

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (cs *namedControls) UnmarshalYAML(n ast.Node) error {
	*cs = namedControls{}
	return eachPair(n, "a name", func(name string, at yamlfile.Position, value ast.Node) error {
		var c control
		if err := c.UnmarshalYAML(value); err != nil {
			return err
		}
		switch _, twice := (*cs)[name]; {
		case twice:
			return yamlfile.Errorf(at, "the control %q is given twice", name)
		case name == noControl, name == autoControl:
			return yamlfile.Errorf(at, "a control cannot be called %s, which is a keyword", name)
		case c.word.V != "":
			return yamlfile.Errorf(c.at, "want the flags that the control sets differently, like {lock: none}")
		}
		(*cs)[name] = c
		return nil
	})
}

// limit is the maximum of a percentile of an operation's latency. It is absolute, so it applies to one machine.
type limit struct {
	operation, percentile string
	most                  span
	at                    yamlfile.Position
}

type ceilings []limit

// percentiles are the percentiles in reports.
var percentiles = []string{"p50", "p90", "p99", "p999", "max"}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (ls *ceilings) UnmarshalYAML(n ast.Node) error {
	return eachPair(n, "an operation and a percentile, like acquire.p99", func(key string, at yamlfile.Position, value ast.Node) error {
		operation, percentile, _ := strings.Cut(key, ".")
		if err := known(at, "operation", operation, operations()); err != nil {
			return err
		}
		if err := known(at, "percentile", percentile, percentiles); err != nil {
			return err
		}
		l := limit{operation: operation, percentile: percentile, at: at}
		if err := l.most.UnmarshalYAML(value); err != nil {
			return err
		}
		*ls = append(*ls, l)
		return nil
	})
}

// operations returns the kinds of operations that clients make.
func operations() (names []string) {
	for _, k := range []history.Kind{
		history.Acquire, history.Extend, history.Release, history.Buy, history.Refund, history.Enqueue, history.Pop,
		history.Dequeue, history.Ack, history.Effect, history.NextID, history.Take, history.Submit,
	} {
		names = append(names, k.String())
	}
	return names
}

// known returns an error for a name that is not in the list.
func known(at yamlfile.Position, what, name string, all []string) error {
	if slices.Contains(all, name) {
		return nil
	}
	if near := variant.Nearest(name, all); len(near) > 0 {
		return yamlfile.Errorf(at, "%s %q is not known: did you mean %s?", what, name, strings.Join(near, " or "))
	}
	return yamlfile.Errorf(at, "%s %q is not known: it is one of %s", what, name, strings.Join(all, ", "))
}

// read reads and validates a plan file.
func read(path string) (document, error) {
	var d document
	source, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := decode(source, &d); err != nil {
		return d, inFile(path, err)
	}
	d.locate(path)
	return d, nil
}

// locate resolves the paths of system files relative to the plan, like all its paths.
func (d *document) locate(plan string) {
	all := []*flags{&d.Defaults.Run, &d.Defaults.Explore, d.Defaults.Control.flags}
	for _, c := range d.Controls {
		all = append(all, c.flags)
	}
	for _, e := range d.Safety {
		all = append(all, e.Run, e.Explore, e.Control.flags)
	}
	for _, c := range d.Performance {
		all = append(all, c.Run, c.Baseline)
	}
	for _, f := range all {
		if f == nil {
			continue
		}
		for _, i := range f.items {
			for n := range i.values {
				if i.name == "system" {
					i.values[n].V = beside(plan, i.values[n].V)
				}
			}
		}
	}
}

// decode decodes a plan.
func decode(source []byte, d *document) (err error) {
	defer yamlfile.Recover(&err, "plan")
	body, err := yamlfile.Parse(source, planKeys(), "plan", docs)
	if err != nil {
		return err
	}
	if err := yaml.NodeToValue(body, d, yaml.Strict()); err != nil {
		return yamlfile.Positioned(err, planKeys(), docs)
	}
	if err := empty(body, "", yamlfile.Position{}); err != nil {
		return err
	}
	place(body, d)
	return nil
}

// empty refuses a key without a value and an empty item: the author may have forgotten the value.
func empty(n ast.Node, key string, at yamlfile.Position) error {
	switch v := n.(type) {
	case *ast.NullNode:
		return yamlfile.Errorf(at, "%s has no value: give it one, or leave it out", key)
	case *ast.AnchorNode:
		return empty(v.Value, key, at)
	case *ast.SequenceNode:
		for _, item := range v.Values {
			if err := empty(item, "an item of "+or(key, "the list"), yamlfile.PositionOf(item)); err != nil {
				return err
			}
		}
		return nil
	}
	pairs, err := pairsOf(n)
	if err != nil {
		return nil // it has no keys
	}
	for _, p := range pairs {
		if err := empty(p.Value, p.Key.String(), yamlfile.TokenAt(p.Key.GetToken())); err != nil {
			return err
		}
	}
	return nil
}

// place records where entries begin.
func place(n ast.Node, d *document) {
	pairs, _ := pairsOf(n)
	for _, p := range pairs {
		items, ok := p.Value.(*ast.SequenceNode)
		if !ok {
			continue
		}
		for i, item := range items.Values {
			switch key := p.Key.String(); {
			case key == "safety" && i < len(d.Safety):
				d.Safety[i].at = yamlfile.PositionOf(item)
			case key == "performance" && i < len(d.Performance):
				d.Performance[i].at = yamlfile.PositionOf(item)
			}
		}
	}
}

// inFile prefixes an error with the file's name.
func inFile(path string, err error) error {
	if m := (*yamlfile.Error)(nil); errors.As(err, &m) {
		if m.At.Line == 0 {
			m.At = yamlfile.Position{Line: 1, Column: 1}
		}
		return fmt.Errorf("%s:%w", path, m)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// planKeys returns all keys of a plan, for suggestions.
func planKeys() (keys []string) {
	for _, t := range []reflect.Type{reflect.TypeFor[document](), reflect.TypeFor[defaults](), reflect.TypeFor[entry](), reflect.TypeFor[comparison]()} {
		keys = append(keys, keysOf(t)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// keysOf returns the keys of one part of a plan.
func keysOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// beside resolves a path relative to the plan.
func beside(plan, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(plan), path)
}
