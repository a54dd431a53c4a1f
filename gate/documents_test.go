package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocumentedThresholds checks that docs/verdicts.md and docs/gate.md have the numbers of the code.
func TestDocumentedThresholds(t *testing.T) {
	for file, want := range map[string]string{
		"verdicts.md": fmt.Sprintf("fewer than %d)", fewestOpportunities),
		"gate.md":     fmt.Sprintf("With fewer than %d over all runs", fewestOpportunities),
	} {
		if text, err := os.ReadFile("../docs/" + file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v; it must say %q", file, err, want)
		}
	}
}
