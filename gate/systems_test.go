package gate

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSystemsLieBesideTheirPlan checks that the path of a system's file is relative to the plan, wherever the gate is
// run.
func TestSystemsLieBesideTheirPlan(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s.yaml": "name: mine\nobject: lock\ncommand: [cat]\n",
		"plan.yaml": `defaults: {run: {target: embedded, scenario: mutex}}
safety:
  - {name: a, expect: pass, control: none, run: {system: s.yaml}}
  - {name: b, expect: pass, control: none, explore: {system: s.yaml}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(t.Context(), filepath.Join(dir, "plan.yaml")); err != nil {
		t.Error(err)
	}
	t.Chdir(filepath.Dir(dir))
	if _, err := Load(t.Context(), filepath.Join(filepath.Base(dir), "plan.yaml")); err != nil {
		t.Error(err)
	}
}
