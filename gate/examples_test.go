package gate

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/rhysd/actionlint"
)

// TestExamplePlan checks that the plan that people copy can be carried out.
func TestExamplePlan(t *testing.T) {
	p, err := Load(t.Context(), filepath.Join("..", "examples", "gate", "gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.safety) < 4 || len(p.speed) < 1 {
		t.Errorf("%d entries under safety, %d under performance", len(p.safety), len(p.speed))
	}
	for _, g := range p.safety {
		if g.kind == kindRun && g.Expect.V == "pass" && g.control.flags == nil && len(suspects(t.Context(), g.flags, g.plan.Runs[0])) == 0 {
			t.Errorf("%s: no control can be found", g.Name.V)
		}
	}
}

// TestExampleWorkflow checks that GitHub accepts the workflow that people copy.
func TestExampleWorkflow(t *testing.T) {
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.LintFile(filepath.Join("..", "examples", "gate", "oversell.yml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Error(e)
	}
	// The test shows nothing unless the linter finds an error.
	if found, err = l.Lint("wrong.yml", []byte("on: push\njobs:\n  x:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ github.reff }}\n"), nil); err != nil || len(found) == 0 {
		t.Errorf("a wrong workflow: %v, %v", found, err)
	}
}
