package gate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/yamlfile"
)

// FuzzPlan checks that a plan can be carried out, or is refused in one line with its position. Nothing is started.
func FuzzPlan(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "examples", "gate", "gate.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	const head = "safety:\n  - name: x\n    expect: pass\n    run: {lock: lua-release, "
	for _, tail := range []string{
		"clients: 1e308}", "pool: 100000000}", "hold: 2562047h}", "quantity: 9223372036854775807}", "ttl: .nan}", "stock: 0x7fffffffffffffff}",
		"stock: 5}\n    repeat: 99999999999999999999", "stock: 5}\n    budget: 9999999h", "stock: 5}\n    seeds: [-1, 1.5]", "stock: 5}\n    limits: {acquire.p99: -1ns}",
		"fault: [crash nth 99999999999999999999, pause 48h]}", "seed: 18446744073709551615}\n    repeat: 3", "image: x}",
	} {
		f.Add(head + tail + "\n")
	}
	f.Add("performance:\n  - name: x\n    run: {lock: fenced, scenario: mutex}\n    baseline: {lock: lua-release}\n    rounds: 1\n    max_slowdown: 1e999%\n")
	f.Add("&a [*a]")
	f.Add("performance:\n !- ") // the YAML library panics at this
	f.Add("    0: 0\n    >\n:")
	f.Add("controls: {\"\\e\": {lock: none}}\nsafety: [{name: \"\\u202e\", expect: pass, explore: {clients: 99}}]")
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Contains(source, "//") || strings.Contains(source, "tcp") || strings.Contains(source, "sql") || len(source) > 4000 {
			return // avoids looking up host names
		}
		var d document
		err := decode([]byte(source), &d)
		if err == nil {
			err = (&Plan{Path: "plan.yaml"}).resolve(context.Background(), d)
		}
		if err == nil {
			return
		}
		if m := (*yamlfile.Error)(nil); !errors.As(err, &m) && !strings.Contains(err.Error(), "no such") {
			t.Errorf("%q is refused without a place: %v", source, err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is refused in several lines: %q", source, err)
		}
	})
}
