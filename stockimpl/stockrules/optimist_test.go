package stockrules

import (
	"strings"
	"testing"

	"oversell/stockimpl"
)

// TestRefusesStale checks which answers are accused. The sales of the test send four commands, and read before the third.
func TestRefusesStale(t *testing.T) {
	const commands, reads = 4, 2
	for _, tt := range []struct {
		name string
		// changes alters what a sound sale does.
		changes func(c Clash, noticed bool, got *Clashed)
		want    string
	}{
		{"sound", func(Clash, bool, *Clashed) {}, ""},
		{"ignores RefuseStale", func(c Clash, noticed bool, got *Clashed) {
			if noticed && c.Told {
				*got = Clashed{nil, 2 * commands, true, c.took()}
			}
		}, "a purchase of a client whose RefuseStale was called was answered success when another client bought before its command 3"},
		{"ignores it in refunds", func(c Clash, noticed bool, got *Clashed) {
			if noticed && c.Told && c.Refund {
				*got = Clashed{nil, 2 * commands, true, c.took()}
			}
		}, "a refund of a client whose RefuseStale was called was answered success"},
		{"refuses for all clients", func(c Clash, noticed bool, got *Clashed) {
			if noticed {
				*got = Clashed{stockimpl.ErrStale, commands, true, 0}
			}
		}, "begins again until its order is decided"},
		{"refuses always", func(c Clash, noticed bool, got *Clashed) {
			if c.Told {
				*got = Clashed{stockimpl.ErrStale, commands, c.N > 0, 0}
			}
		}, "beside which nobody else bought, was answered"},
		{"takes the pieces of what it refuses", func(c Clash, noticed bool, got *Clashed) {
			if noticed && c.Told {
				got.Took = c.took()
			}
		}, "want no change"},
		{"overwrites", func(c Clash, noticed bool, got *Clashed) {
			if noticed {
				*got = Clashed{nil, commands, true, 0}
			}
		}, "it took 0 from the stock; want 1"},
		{"says sold out", func(c Clash, noticed bool, got *Clashed) {
			if c.Told && c.N == 1 {
				*got = Clashed{stockimpl.ErrSoldOut, 1, true, 0}
			}
		}, "with plenty left; want success"},
		{"is one command", func(c Clash, noticed bool, got *Clashed) {
			*got = Clashed{nil, 1, c.N == 1, c.took()}
		}, ""},
	} {
		err := RefusesStale(commands+1, true, func(c Clash) (Clashed, error) {
			noticed := c.N > reads && c.N <= commands
			got := Clashed{nil, commands, c.N > 0 && c.N <= commands, c.took()}
			switch {
			case noticed && c.Told:
				got.Answer, got.Took = stockimpl.ErrStale, 0
			case noticed:
				got.Sent = 2 * commands
			}
			tt.changes(c, noticed, &got)
			return got, nil
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
}
