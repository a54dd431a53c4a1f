package foreign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"oversell/history"
	"oversell/internal/yamlfile"
)

// MapSchema identifies the format of a mapping.
const MapSchema = "oversell-map/1"

// docs is the document about mappings.
const docs = "docs/history.md"

// Map describes how the rows of a production log become the operations of a history.
type Map struct {
	Schema string `yaml:"schema"`
	// Rows is the format of the log: csv with column names in the first line, or jsonl.
	Rows string `yaml:"rows"`
	// Separator is the column separator of csv, if not a comma.
	Separator string `yaml:"separator"`
	// Stock, TTL and Promises are fields of a history's header.
	Stock    *int64        `yaml:"stock"`
	TTL      *span         `yaml:"ttl"`
	Drift    *span         `yaml:"drift"`
	Promises []promise     `yaml:"promises"`
	Skip     []*skip       `yaml:"skip"`
	Fields   fields        `yaml:"fields"`
	Outcome  outcomeColumn `yaml:"outcome"`
}

type promise struct {
	Of       string `yaml:"of" json:"of"`
	Property string `yaml:"property" json:"property"`
}

// fields are the columns of an operation.
type fields struct {
	Client   *column `yaml:"client"`
	Kind     *column `yaml:"kind"`
	Key      *column `yaml:"key"`
	Arg      *column `yaml:"arg"`
	Result   *column `yaml:"result"`
	Session  *column `yaml:"session"`
	Amount   *column `yaml:"amount"`
	Fence    *column `yaml:"fence"`
	Call     *column `yaml:"call"`
	Return   *column `yaml:"return"`
	Duration *column `yaml:"duration"`
	Until    *column `yaml:"until"`
}

// column is the source of a field: a column, with optional replacements of its values, or one value for all rows.
type column struct {
	Column string            `yaml:"column"`
	Value  string            `yaml:"value"`
	Values map[string]string `yaml:"values"`
	Unit   string            `yaml:"unit"`
	Format string            `yaml:"format"`
	at     yamlfile.Position
}

// skip skips rows with one of some values in a column.
type skip struct {
	Column string   `yaml:"column"`
	Values []string `yaml:"values"`
}

// outcomeColumn determines the outcome of an operation.
type outcomeColumn struct {
	Column  string            `yaml:"column"`
	OK      []string          `yaml:"ok"`
	Refused map[string]string `yaml:"refused"`
	Unknown []string          `yaml:"unknown"`
	Else    string            `yaml:"else"`
	at      yamlfile.Position
}

// span is a duration in a mapping.
type span struct{ time.Duration }

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *span) UnmarshalYAML(n ast.Node) (err error) {
	var text string
	if err := yaml.NodeToValue(n, &text); err != nil {
		return err
	}
	if s.Duration, err = time.ParseDuration(text); err != nil || s.Duration <= 0 {
		return yamlfile.Errorf(yamlfile.PositionOf(n), "%q is not a duration: want one such as 10s", text)
	}
	return nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler: a plain text is the name of a column.
func (c *column) UnmarshalYAML(n ast.Node) error {
	c.at = yamlfile.PositionOf(n)
	if n.Type() != ast.MappingType && n.Type() != ast.MappingValueType {
		return yaml.NodeToValue(n, &c.Column)
	}
	type plain column
	p := plain{at: c.at}
	if err := yaml.NodeToValue(n, &p, yaml.Strict()); err != nil {
		return err
	}
	*c = column(p)
	switch {
	case c.Column == "" && c.Value == "":
		return yamlfile.Errorf(c.at, "neither column nor value is given: one is required")
	case c.Column != "" && c.Value != "":
		return yamlfile.Errorf(c.at, "column and value are both given: only one is allowed")
	case c.Unit != "" && units[c.Unit] == 0:
		return yamlfile.Errorf(c.at, "unit %q is not known: it is one of ns, us, ms, s", c.Unit)
	case c.Unit != "" && c.Format != "":
		return yamlfile.Errorf(c.at, "unit and format are both given: numbers have a unit, and texts a format")
	}
	return nil
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (o *outcomeColumn) UnmarshalYAML(n ast.Node) error {
	type plain outcomeColumn
	p := plain{at: yamlfile.PositionOf(n)}
	if err := yaml.NodeToValue(n, &p, yaml.Strict()); err != nil {
		return err
	}
	*o = outcomeColumn(p)
	for _, value := range slices.Concat(o.OK, o.Unknown) {
		_, refused := o.Refused[value]
		if refused || slices.Contains(o.OK, value) && slices.Contains(o.Unknown, value) {
			return yamlfile.Errorf(o.at, "%q is in more than one of ok, refused and unknown", value)
		}
	}
	for value, reason := range o.Refused {
		if _, err := history.ParseReason(reason); err != nil {
			return yamlfile.Errorf(o.at, "refused: %q stands for %v: want one of held, lost, sold-out, stale, empty, changed", value, err)
		}
	}
	if o.Else != "" {
		if _, err := history.ParseOutcome(o.Else); err != nil || o.Else == "refused" {
			return yamlfile.Errorf(o.at, "else is %q: it is ok or unknown", o.Else)
		}
	}
	return nil
}

// units are the units of numeric times.
var units = map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}

// ReadMap reads a mapping. If the file is not a valid mapping, the error names the line and the column.
func ReadMap(path string) (*Map, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseMap(source)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return m, nil
}

// parseMap is ReadMap for a text.
func parseMap(source []byte) (*Map, error) {
	m := new(Map)
	if err := yamlfile.Decode(source, m, "map", docs); err != nil {
		return nil, err
	}
	top := yamlfile.Position{Line: 1, Column: 1}
	f := m.Fields
	switch {
	case m.Schema != "" && m.Schema != MapSchema:
		return nil, yamlfile.Errorf(top, "schema %q is not known: it is %s", m.Schema, MapSchema)
	case !slices.Contains([]string{"", "csv", "jsonl"}, m.Rows):
		return nil, yamlfile.Errorf(top, "rows: %q is not known: it is csv or jsonl", m.Rows)
	case strings.ContainsAny(m.Separator, "\"\r\n\ufffd"):
		return nil, yamlfile.Errorf(top, "separator: %q cannot separate columns: want another character", m.Separator)
	case len([]rune(m.Separator)) > 1:
		return nil, yamlfile.Errorf(top, "separator: %q is more than one character", m.Separator)
	case f.Kind == nil:
		return nil, yamlfile.Errorf(top, "fields: kind is missing: a column, or {value: buy}")
	case f.Call == nil:
		return nil, yamlfile.Errorf(top, "fields: call is missing: the column with the time at which the operation began")
	case f.Return == nil && f.Duration == nil:
		return nil, yamlfile.Errorf(top, "fields: neither return nor duration is given: one is required")
	case f.Return != nil && f.Duration != nil:
		return nil, yamlfile.Errorf(f.Duration.at, "return and duration are both given: only one is allowed")
	case m.Outcome.Column == "":
		return nil, yamlfile.Errorf(top, "outcome: column is missing: with the lists ok, refused and unknown it determines the outcome of an operation")
	}
	for _, c := range []struct {
		name string
		of   *column
	}{{"client", f.Client}, {"kind", f.Kind}, {"key", f.Key}, {"arg", f.Arg}, {"result", f.Result}, {"session", f.Session}, {"amount", f.Amount}, {"fence", f.Fence}} {
		if c.of != nil && c.of.Unit+c.of.Format != "" {
			return nil, yamlfile.Errorf(c.of.at, "%s has a unit or a format: only times have one", c.name)
		}
	}
	return m, nil
}

// names reports whether the mapping names a column.
func (m *Map) names(name string) bool {
	f := &m.Fields
	for _, c := range []*column{f.Client, f.Kind, f.Key, f.Arg, f.Result, f.Session, f.Amount, f.Fence, f.Call, f.Return, f.Duration, f.Until} {
		if c != nil && c.Column == name {
			return true
		}
	}
	return m.Outcome.Column == name || slices.ContainsFunc(m.Skip, func(s *skip) bool { return s.Column == name })
}

// form returns csv or jsonl; by the name of the log if the mapping does not say.
func (m *Map) form(path string) string {
	switch {
	case m.Rows != "":
		return m.Rows
	case strings.EqualFold(filepath.Ext(path), ".csv"):
		return "csv"
	}
	return "jsonl"
}
