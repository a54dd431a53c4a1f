package explore

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
)

func TestSmoke(t *testing.T) {
	names := []string{"redislock-printed"}
	if v := os.Getenv("LOCKS"); v != "" {
		names = nil
		for _, l := range lockimpl.Variants {
			names = append(names, l.Name)
		}
	}
	for _, name := range names {
		l, _ := lockimpl.Find(name)
		s, _ := scenarios.Find("mutex")
		start := time.Now()
		r, err := Run(t.Context(), Config{Run: scenarios.Config{Scenario: s, Lock: l}, Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1, TimeMS: 5000}})
		fmt.Println(name, time.Since(start), err, r.Verdict, r.Why)
		b, _ := json.Marshal(r.Stats)
		fmt.Println(string(b))
		if c := r.Counterexample; c != nil {
			for i, s := range c.Steps {
				fmt.Println(i+1, s.AtMS, s.Client, s.Kind, s.Text, s.Marks, "|", s.Redis)
			}
		}
	}
}
