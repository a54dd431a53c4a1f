package judging

import (
	"strings"
	"testing"

	"oversell/reports"
)

// TestEngineNote checks that the note of a run says what the engine means for its verdict.
func TestEngineNote(t *testing.T) {
	r := reports.Run{Engine: "mux", Clients: 10, Pipelines: 4, RTT: 2.5}
	if note := engineNote(&r); !strings.Contains(note, "10 clients on 4 pipelines") || !strings.Contains(note, "2.5 ms") {
		t.Error(note)
	}
	r.RTT = 0
	if note := engineNote(&r); !strings.Contains(note, "hides races") {
		t.Error(note)
	}
	if note := engineNote(&reports.Run{Engine: "goroutine"}); note != "" {
		t.Error(note)
	}
}
